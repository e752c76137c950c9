"""The table classifier: one label for each row of a table."""
