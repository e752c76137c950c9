"""Divides a pass over all rows into tasks of bounded size, run in order or in parallel."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

TASK_BYTES = 16 * 2**20
"""The source bytes that one Ray task reads, if the parts allow; for fewer, starting a process does not pay off."""


class Sized(Protocol):
    """A part, or another source of rows. Picklable."""

    @property
    def size(self) -> int:
        """Bytes to read."""
        ...


SizedT = TypeVar("SizedT", bound=Sized)
Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Yields the result of `work` for each item, in order, and takes items as it goes. Raises the exception of the
    first item that fails."""

    def __call__(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]: ...


def one_by_one(work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]:
    """The `Mapper` of this process."""
    return map(work, items)


def group_parts(parts: Sequence[SizedT]) -> list[list[SizedT]]:
    """Groups consecutive parts into tasks of up to about TASK_BYTES."""
    tasks: list[list[SizedT]] = []
    size = 0
    for part in parts:
        if not tasks or size + part.size > TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(part)
        size += part.size
    return tasks
