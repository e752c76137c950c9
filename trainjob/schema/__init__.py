"""What all types that YAML and JSON are checked against share: base classes and patterns."""
