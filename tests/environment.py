"""The environment variables of a test's process."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def environment_kept() -> Generator[None]:
    """After the block, no name is in the environment that was not there before it."""
    names = set(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - names:
            del os.environ[name]
