"""A run's folder: its files, history, checkpoints and summary, written by training and read by everything else."""
