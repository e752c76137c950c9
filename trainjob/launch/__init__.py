"""Starts a function in several processes, on this machine or on a Ray cluster; knows nothing of models."""
