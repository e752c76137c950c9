"""Runs requests to a server in parallel."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

REQUESTS = 16
"""Requests in flight at once."""


def concurrently(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Calls `function` for each item in threads and returns the results in order. Raises the first item's exception."""
    with ThreadPoolExecutor(REQUESTS) as threads:
        return list(threads.map(function, items))
