"""How many rows this process has read, for the display of what takes long."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainjob.data.rows import Rows


@dataclass
class RowsRead:
    """Rows that were read since the last pass over them began."""

    done: int = 0
    total: int | None = None
    """Of how many, where that is known beforehand."""

    def begin(self, total: int | None = None) -> None:
        self.done, self.total = 0, total

    def counted(self, rows: Iterable[Rows]) -> Iterator[Rows]:
        for some in rows:
            yield some
            self.done += len(some.table)


ROWS_READ = RowsRead()
