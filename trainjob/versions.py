"""The versions of the packages that a run depends on."""

import platform
from importlib.metadata import version

PACKAGES = ("trainjob", "torch", "ray", "transformers", "tokenizers", "pyarrow", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python and of `PACKAGES`, by name."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
