"""Targets: the labels that are learned, and the form of an answer."""
