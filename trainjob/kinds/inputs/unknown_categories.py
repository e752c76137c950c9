"""Cells of a table that are none of the categories that a model has learned."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from trainjob.data.read.rows import as_text
from trainjob.kinds.inputs.cells import as_categories, trimmed
from trainjob.kinds.inputs.table_columns import TableColumn

pc: Any = pyarrow.compute  # whose functions type checkers do not know


def unknown_categories(columns: Sequence[TableColumn], table: pa.Table, where: Callable[[int], str]) -> dict[str, int]:
    """The number of such cells of each column that has some. Empty cells do not count."""
    found = dict[str, int]()
    for column in columns:
        if column.categories is None:
            continue
        cells = table[column.name]
        if not column.categories.unknown(cells):
            continue  # as nearly always: the cells need not be parsed
        read = as_categories(trimmed(as_text(cells, column.name, where)))
        unknown = pa.array(column.categories.unknown(read), pa.string())
        if count := pc.sum(pc.is_in(read, unknown), min_count=0).as_py():
            found[column.name] = count
    return found
