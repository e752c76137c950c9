"""A language model that continues texts."""
