"""A transformer that finds spans of a text, such as names, and gives each a type."""
