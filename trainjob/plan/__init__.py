"""Computes what a TrainJob needs before anything is trained: rows, steps, memory and time."""
