"""How training goes: from rank 0 to the driver, and from there to the display and `status.training`."""
