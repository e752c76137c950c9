"""Memory that this process has freed."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def return_freed_memory() -> None:
    """Returns freed memory to the system, which Arrow and the C library would keep for later."""
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # not GNU's C library
        ctypes.CDLL(None).malloc_trim(0)
