"""A transformer that predicts a number for each text."""
