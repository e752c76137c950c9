"""Baselines: cheap models that the trained model is compared with on the same rows."""
