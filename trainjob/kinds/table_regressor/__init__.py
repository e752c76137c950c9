"""TabM that predicts a number for each row of a table."""
