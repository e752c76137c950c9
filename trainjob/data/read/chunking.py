"""A pass over all rows in tasks of a bounded size, one after the other or at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

TASK_BYTES = 16 * 2**20
"""Source bytes that one Ray task reads, where the parts allow; starting a process for less does not pay."""


class Sized(Protocol):
    """A part, or what else rows are read from. Picklable."""

    @property
    def size(self) -> int:
        """Bytes that are read."""
        ...


Some = TypeVar("Some", bound=Sized)
Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Gives what `work` makes of each item, in their order, and takes further items as it goes on. Raises what `work`
    raises for the first of them that it fails on."""

    def __call__(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]: ...


def one_by_one(work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]:
    """The `Mapper` of this process."""
    return map(work, items)


def tasks_of(parts: Sequence[Some]) -> list[list[Some]]:
    """Consecutive parts together, up to about TASK_BYTES."""
    tasks: list[list[Some]] = []
    size = 0
    for part in parts:
        if not tasks or size + part.size > TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(part)
        size += part.size
    return tasks
