"""The scores of a model, one module for each kind of scores with the template of its section in the report."""
