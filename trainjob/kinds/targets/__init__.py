"""Targets: what is learned of a row, and the form of an answer."""
