"""Importing large libraries quickly."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Generator[None]:
    """Disables the garbage collector for the time of the block: it would scan all loaded objects again and again, which
    takes a fifth of the time to import torch and transformers. Afterwards it ignores these objects, so forks continue
    to share their memory."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
