"""The training of a run: its driver, and the loop that every worker executes."""
