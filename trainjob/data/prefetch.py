"""Prepares the next items of an iterator in a thread, while the previous ones are used."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from trainjob.interrupts import result_of

AHEAD = 2
"""Items prepared ahead."""

_Item = TypeVar("_Item")


def prefetched(items: Iterator[_Item], begin: Callable[[], None] = lambda: None) -> Generator[_Item]:
    """The items, up to AHEAD of them prepared by a thread that calls `begin` first. Raises their exceptions here."""
    end: Any = object()
    with ThreadPoolExecutor(1, initializer=begin) as thread:
        waiting = deque(thread.submit(next, items, end) for _ in range(AHEAD))
        while (item := result_of(waiting.popleft())) is not end:
            waiting.append(thread.submit(next, items, end))
            yield item
