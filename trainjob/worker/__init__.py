"""Every worker of a run: builds the model, trains, scores and saves checkpoints."""
