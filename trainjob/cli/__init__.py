"""The `trainjob` command."""
