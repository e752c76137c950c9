"""Reads parts, and counts the progress for the display."""

from collections.abc import Iterable, Iterator, Sequence

from trainjob.data.prefetch import prefetched
from trainjob.data.read.archives import is_zip
from trainjob.data.read.chunking import Result, Sized
from trainjob.data.read.image_tables import ListedImages
from trainjob.data.read.rows import OnBadRow, Rows, SourcePart, refuse
from trainjob.doing import BYTES, DOING, ROWS


def begin_reading(sets: Iterable[Sequence[SourcePart]]) -> None:
    """Announces that all parts of these sets will be read. Counts bytes, or rows if a part does not know its size or
    position."""
    sizes = [0 if is_zip(part.uri) or isinstance(part, ListedImages) else part.size for parts in sets for part in parts]
    if sizes and all(sizes):
        DOING.begin("reading", sum(sizes), BYTES)
    else:
        DOING.begin("reading", None, ROWS)


def read_part(part: SourcePart, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
    """The rows of a part, counted. A thread, which also calls `on_bad`, reads the next ones ahead."""
    start = DOING.now.done
    for rows in prefetched(part.read(columns, on_bad)):
        yield rows
        if DOING.now.unit == ROWS:
            DOING.add(len(rows.table))
        elif DOING.now.unit == BYTES:
            DOING.reach(min(DOING.now.done + rows.size, start + part.size))
    if DOING.now.unit == BYTES:
        DOING.reach(start + part.size)


def read_all(some: Iterable[SourcePart], columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
    """The rows of all parts, counted."""
    for part in some:
        yield from read_part(part, columns, on_bad)


def counted(results: Iterable[Result], tasks: Iterable[Sequence[Sized]]) -> Iterator[Result]:
    """The results of tasks that read parts. Counts the parts as read, also if another process has read them."""
    done = DOING.now.done
    for result, parts in zip(results, tasks, strict=True):
        done += sum(part.size for part in parts)
        if DOING.now.unit == BYTES:
            DOING.reach(done)
        yield result
