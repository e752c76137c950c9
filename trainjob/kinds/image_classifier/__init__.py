"""A network that gives each image one class."""
