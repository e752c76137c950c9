"""Reads the training rows of a table: their labels and hashes, the types of the columns, and a sample of the rows."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset
from trainjob.api.dataset import ColumnType
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import LabelReader, ScannedRows, ScanPlan, Survey, scan_rows
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.counted_reading import begin_reading
from trainjob.data.read.label_lists import label_column, separate_labels
from trainjob.data.read.rows import Rows, SourcePart
from trainjob.errors import DataError, RowError, listed
from trainjob.kinds.inputs.cells import READERS, cells_of, read_cells
from trainjob.kinds.inputs.column_types import CellCounts, LeftOut, TypeFinder, first_types, typed
from trainjob.kinds.inputs.table import joined_cells, separated_cells
from trainjob.kinds.inputs.table_columns import TableColumn

SAMPLED_CELLS = 2_000_000
MIN_SAMPLED, MAX_SAMPLED = 5_000, 50_000
"""The numbers of rows that columns are fitted on."""

SampledRow = tuple[bytes, tuple[str | None, ...]]
"""The joined cells of a row, and the cells of its labels, as tuples, which the garbage collector skips."""


@dataclass
class ScannedTable:
    """The rows of a table, read with these types of its columns."""

    types: dict[str, ColumnType]
    survey: Survey[SampledRow]
    labels: LabelReader
    bad: BadRows
    found: dict[str, CellCounts]
    """The types found in all rows, by column."""


def scan_table(
    dataset: Dataset,
    names: Sequence[str],
    left_out: dict[str, LeftOut],
    labels: LabelReader,
    parts: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
) -> ScannedTable:
    """Finds the types of the columns `names`, and adds to `left_out` why a column is left out.

    The rows are read with the types that the first rows have. They are read again if all rows have other types, or if
    some cannot be used, which may be due to a column that is left out. Raises DataError if no column is left.
    """
    given = dataset.columns or {}
    unknown = [name for name in names if name not in given]
    types = _first_types(names, given, unknown, parts)
    scanned = scan_typed(types, unknown, dataset, labels, parts, seed, mapper) if used(types) else None
    if scanned is not None and not (len(scanned.survey.hashes) or scanned.bad.count):
        return scanned  # no rows
    if scanned is not None:
        types = _types(names, given, scanned.found, left_out)
    if not used(types):
        raise nothing_left(dataset, left_out)
    is_clean = scanned is not None and not (scanned.bad.count and "ignore" in types.values())
    if scanned is not None and scanned.types == types and is_clean:
        return scanned
    begin_reading([parts])
    return scan_typed(types, [], dataset, labels, parts, seed, mapper)


def scan_typed(
    types: dict[str, ColumnType],
    unknown: Sequence[str],
    dataset: Dataset,
    labels: LabelReader,
    parts: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
) -> ScannedTable:
    """Reads the rows once, with these types of the columns. Finds the types of the columns `unknown`."""
    names, label_columns = used(types), separate_labels(dataset)

    def scan(rows: Rows) -> ScannedRows[SampledRow]:
        contents = joined_cells([cells_of(rows, name) for name in names])
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        answers = [cells_of(rows, name).to_pylist() for name in label_columns]
        return ScannedRows(
            hashes(contents, seed),
            lambda index: (contents[index], tuple(each[index] for each in answers)),
            (lengths >= len(names)).astype(np.uint8),  # others are only separators
        )

    sampled = int(np.clip(SAMPLED_CELLS // len(names), MIN_SAMPLED, MAX_SAMPLED))
    columns = list(dict.fromkeys([*names, *unknown, str(label_column(dataset))]))
    finder = TypeFinder(labels, {name: CellCounts() for name in unknown})
    bad = BadRows()
    survey, reader = scan_rows(parts, ScanPlan(columns, finder, scan, sampled, partial(_check, types)), mapper, bad)
    assert isinstance(reader, TypeFinder)
    return ScannedTable(types, survey, reader.labels, bad, reader.found)


def used(types: Mapping[str, ColumnType]) -> list[str]:
    """The columns that are not left out."""
    return [name for name, kind in types.items() if kind != "ignore"]


def with_type(types: Mapping[str, ColumnType], names: Sequence[str], kind: ColumnType) -> dict[str, ColumnType]:
    """The types, with that of the columns `names` changed."""
    return {name: kind if name in names else each for name, each in types.items()}


def sampled_cells(
    rows: Sequence[SampledRow], columns: int, label_columns: int
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The cells of each column, and of each column of labels."""
    labels = [pa.array([own[each] for _, own in rows], pa.string()) for each in range(label_columns)]
    return separated_cells([content for content, _ in rows], columns), labels


def nothing_left(dataset: Dataset, left_out: Mapping[str, LeftOut]) -> DataError:
    why = reasons(left_out, "textClassifier and textRegressor learn only from texts")
    return DataError(
        f"{listed(dataset.train.all_uris)}: no column can be learned from: {why or 'there is none beside the label'}"
    )


def reasons(left_out: Mapping[str, LeftOut], advice_on_texts: str) -> str:
    """Why each column is left out, with this advice on those that may hold texts."""
    return listed(
        [f"{name} ({each.why}{f'; {advice_on_texts}' if each.may_be_text else ''})" for name, each in left_out.items()]
    )


def _first_types(
    names: Sequence[str], given: Mapping[str, ColumnType], unknown: Sequence[str], parts: Sequence[SourcePart]
) -> dict[str, ColumnType]:
    """The types by the first rows. If these leave out all columns, all are categories."""
    types: dict[str, ColumnType] = {name: given.get(name, "ignore") for name in names}
    for name, found in first_types(unknown, parts).items():
        with suppress(DataError):
            types[name] = found.type(name)[0]
    return types if used(types) else with_type(types, unknown, "category")


def _types(
    names: Sequence[str], given: Mapping[str, ColumnType], found: Mapping[str, CellCounts], left_out: dict[str, LeftOut]
) -> dict[str, ColumnType]:
    """The type of each column. Adds to `left_out` why a column is left out."""
    types: dict[str, ColumnType] = dict(given)
    for name, each in found.items():
        types[name], why = each.type(name)
        if why is not None:
            left_out[name] = why
    return {name: types[name] for name in names}


def _check(types: Mapping[str, ColumnType], rows: Rows) -> None:
    """Raises RowError for the first cell that is not of its column's type."""
    for name, kind in types.items():
        if kind in READERS and read_cells(rows, name, kind)[1].any():
            try:
                TableColumn(name, kind, [], None).raw(cells_of(rows, name), rows.where)
            except RowError as error:
                advice = f"correct it, or set dataset.columns to {typed(name, 'category')} or {typed(name, 'ignore')}"
                kind = f"{error.kind} ({advice})"
                raise RowError(f"{error}; {advice}", error.location, kind, error.detail) from None
