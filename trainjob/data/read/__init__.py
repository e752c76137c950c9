"""Finds and reads the files of a dataset. Errors name the file and the row."""
