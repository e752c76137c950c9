"""The search for hyperparameters: which to try next, and the trials' state; how a trial is trained is none of it."""
