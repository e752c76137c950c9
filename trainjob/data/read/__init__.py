"""Finds and reads the files of a dataset: rows as they are, and errors that name file and row."""
