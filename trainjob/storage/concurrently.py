"""Requests that wait for a server, several at a time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

REQUESTS = 16
"""How many may wait at a time."""


def concurrently(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What `function` returns for each item, in their order. Raises what it raises for the first that fails."""
    with ThreadPoolExecutor(REQUESTS) as threads:
        return list(threads.map(function, items))
