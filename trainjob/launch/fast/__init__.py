"""What makes a start seconds shorter; without it, runs are the same."""
