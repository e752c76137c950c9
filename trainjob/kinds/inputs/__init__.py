"""Inputs: read the rows of a kind of model and turn them into arrays."""
