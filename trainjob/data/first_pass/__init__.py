"""The first pass over the rows: checks, classes, split and the fitted preprocessor."""
