"""The environment variables of a test's process."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def environment_kept() -> Generator[None]:
    """Removes the variables that the block has added to the environment."""
    names = set(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - names:
            del os.environ[name]
