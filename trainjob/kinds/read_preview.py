"""Reads a preview of unknown data: its first rows."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from trainjob.api import Dataset, Source
from trainjob.data.read.bad_rows import BadRows, bad_rows_error
from trainjob.data.read.image_files import IDXFiles, ImageFiles
from trainjob.data.read.json_lines import JSONLinesFile
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import SourcePart, check_columns, leave_out
from trainjob.data.read.source import parts
from trainjob.data.read.split_folders import with_split_folders
from trainjob.data.read.table_schema import table_schema
from trainjob.errors import DataError, Notice, notify
from trainjob.kinds.data_preview import DataPreview, is_nested
from trainjob.kinds.inputs.cells import as_categories, cells_of, read_cells
from trainjob.kinds.preview_column import Column

MAX_ROWS = 20_000
"""The most rows that are read."""


def read_preview(uri: str, labels: Sequence[str] = ()) -> DataPreview:
    """Reads the first rows at the URI; the user names `labels`. Raises DataError where there are no rows, StorageError
    where they cannot be reached."""
    with collected_notices():  # again when the TrainJob's data is read
        dataset, _ = with_split_folders(Dataset(train=Source(uri=uri)), None)
        found = parts(dataset.train, None, labelled=False)
    if isinstance(found[0], ImageFiles | IDXFiles):
        return DataPreview(uri, found, labels)
    with collected_notices() as notes:
        schema = _schema(found[0])
        names = [name for name in schema.names if name and not is_nested(schema.field(name).type)]
        check_columns(names, schema.names, found[0].uri)
        bad = BadRows(uri)
        columns = _columns(found, names, bad) if names else {}
    if unnamed := schema.names.count(""):
        have = "1 column has no name" if unnamed == 1 else f"{unnamed} columns have no name"
        notes.append(f"{have}: to use such a column, give it one in {found[0].uri}.")
    nested = {name: schema.field(name).type for name in schema.names if name and name not in names}
    return DataPreview(uri, found, labels, columns, nested, notes, bad)


@contextmanager
def collected_notices() -> Generator[list[str]]:
    """Collects the Notices that are given in the block. They are shown only if it raises an error."""
    notes, given = list[str](), list[warnings.WarningMessage]()
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always", Notice)
            yield notes
    except DataError:
        for each in given:
            notify(str(each.message))
        raise
    notes += dict.fromkeys(f"{each.message}." for each in given)


def _columns(found: Sequence[SourcePart], names: list[str], bad: BadRows) -> dict[str, Column]:
    """The columns; counts the rows that cannot be read in `bad`."""
    columns, read = {name: Column() for name in names}, 0
    for part in found:
        for rows in part.read(names, bad.add):
            for name, column in columns.items():
                cells = cells_of(rows, name)
                column.found.add(cells, read_cells(rows, name, "number"))
                column.words += sum(len(cell.split()) for cell in as_categories(cells).drop_null().to_pylist())
            read += len(rows.table)
            if read >= MAX_ROWS:
                return columns
    if bad.count and not read:
        raise bad_rows_error({"": bad}, {})
    if not read:
        raise DataError(f"{found[0].uri} has no rows")
    return columns


def _schema(part: SourcePart) -> pa.Schema:
    """Names and types of the columns. Those of JSON Lines are as the first rows have them."""
    file = part.part if isinstance(part, Partition) else part
    if isinstance(file, JSONLinesFile):
        try:
            first = next(iter(part.read(None, leave_out)), None)
        except DataError:
            return file.schema()
        if first is not None:
            return first.table.schema
    return table_schema(part)
