"""A network that predicts a number for each image."""
