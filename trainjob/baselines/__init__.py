"""Baselines: cheap classifiers that the trained model is compared with on the same rows."""
