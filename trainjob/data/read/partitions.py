"""Columns that are in the names of folders, `label=sky/part-0.parquet`, as Spark, Hive and pandas write them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from trainjob.data.read.rows import OnBadRow, Rows, SourcePart, WrappedPart, refuse

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Partition(WrappedPart):
    """A part of a table with the columns of its folders, which replace columns of the same name."""

    values: tuple[tuple[str, str | None], ...]
    """Name and value of each column."""

    @property
    def names(self) -> list[str]:
        """Names of the folders' columns."""
        return [name for name, _ in self.values]

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        """Reads the rows of the part, and adds the columns of its folders."""
        from_folders = dict(self.values)
        inner = None if columns is None else [name for name in columns if name not in from_folders]
        for rows in self.part.read(inner or None, on_bad):
            table = rows.table.drop_columns([name for name in from_folders if name in rows.table.column_names])
            for name, value in from_folders.items():
                table = table.append_column(name, pa.array([value] * len(rows.table), pa.string()))
            chosen = table.column_names if columns is None else [name for name in columns if name in table.column_names]
            yield Rows(table.select(chosen), rows.where, rows.size)


def partitioned(part: SourcePart, name: str) -> SourcePart:
    """The part with the columns that are in `name`, its file's path below the root."""
    values = partition_values(name)
    return Partition(part, values) if values else part


def partition_values(name: str) -> tuple[tuple[str, str | None], ...]:
    """Name and value of each folder `name=value` of a path."""
    steps = (folder.partition("=") for folder in PurePosixPath(name).parts[:-1])
    return tuple((key, None if value == _NULL else unquote(value)) for key, equals, value in steps if key and equals)
