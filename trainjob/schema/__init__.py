"""Base classes and patterns for the types that validate YAML and JSON."""
