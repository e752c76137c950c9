"""The search for hyperparameters: which values to try next, and the state of the trials. Training is elsewhere."""
