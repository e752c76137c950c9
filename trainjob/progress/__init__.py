"""Sends training progress from rank 0 to the driver, and from there to the terminal and `status.training`."""
