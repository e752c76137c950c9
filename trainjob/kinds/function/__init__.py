"""A Ray Train loop of the user's own."""
