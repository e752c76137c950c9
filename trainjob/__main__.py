"""`python -m trainjob` is the `trainjob` command."""

from trainjob.cli.app import main

main()
