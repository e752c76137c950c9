"""Loading large libraries quickly."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Generator[None]:
    """Holds the garbage collector back, which would look through all that is loaded time and again (a fifth of the
    time that torch and transformers take), and has it leave that alone afterwards: so forks go on sharing it, too."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
