"""`trainjob version`"""

import platform


def version() -> None:
    """Print the versions of trainjob and of what it stands on."""
    from importlib import metadata

    print(f"{'python':<13} {platform.python_version()}")
    for package in ("trainjob", "torch", "ray", "transformers"):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        print(f"{package:<13} {found}")
