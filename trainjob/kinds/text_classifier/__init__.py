"""A transformer that gives each text one class."""
