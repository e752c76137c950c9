"""`trainjob version`"""

import platform

import typer


def version() -> None:
    """Print the versions of trainjob and of its libraries."""
    from importlib import metadata

    print(f"{'python':<13} {platform.python_version()}")
    for package in ("trainjob", "torch", "ray", "transformers"):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        print(f"{package:<13} {found}")


def print_version(wanted: bool) -> None:
    """`trainjob --version`"""
    if wanted:
        from trainjob import __version__

        print(f"trainjob {__version__}")
        raise typer.Exit
