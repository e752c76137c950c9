"""The first pass over the rows of a table: types of columns, labels, split and preprocessor."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset
from trainjob.api.dataset import ColumnType
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, LabelReader, ScannedRows, ScanPlan, take_survey
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.counted_reading import begin_reading
from trainjob.data.read.rows import Rows, SourcePart, as_text, check_columns
from trainjob.data.read.table_schema import table_schema
from trainjob.errors import DataError, RowError, listed
from trainjob.kinds.inputs.cells import READERS, trimmed
from trainjob.kinds.inputs.column_types import Found, find_types
from trainjob.kinds.inputs.leaks import tells
from trainjob.kinds.inputs.table import TableInput, table_contents
from trainjob.kinds.inputs.table_columns import MOST_CATEGORIES, TableColumn

SAMPLED_CELLS = 2_000_000
FEWEST_SAMPLED, MOST_SAMPLED = 5_000, 50_000
"""Rows by which columns are fitted."""
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates", "flag": "flags"}


def fit_table(
    dataset: Dataset, labels: LabelReader, train: Sequence[SourcePart], seed: int, mapped: Mapper, bad: BadRows
) -> FittedOn:
    """Rows with cells that are not of their column's type are counted in `bad`. Raises DataError if no model can be
    fitted."""
    label = dataset.label
    assert label is not None
    names, left_out = _names(dataset, train[0])
    found = find_types([name for name in names if name not in (dataset.columns or {})], train, mapped)
    types = _types(names, dataset.columns or {}, found, left_out)
    names = [name for name in names if types[name] != "ignore"]
    if not names:
        raise DataError(f"{listed(dataset.train.all_uris)}: no column can be learned from: {_shown(left_out)}")
    begin_reading([train])
    sampled = int(np.clip(SAMPLED_CELLS // len(names), FEWEST_SAMPLED, MOST_SAMPLED))
    typed = [TableColumn(name, types[name], [], None) for name in names]

    columns = [*names, label]

    def scan(rows: Rows) -> ScannedRows[tuple[str | None, ...]]:
        contents = table_contents(rows.table, names, rows.where)
        cells = [trimmed(as_text(rows.table[name], name, rows.where)) for name in columns]
        is_empty = np.array([not content.strip(b"\x1f") for content in contents], bool)
        return ScannedRows(
            hashes(contents, seed),
            lambda index: tuple(each[index].as_py() for each in cells),
            (~is_empty).astype(np.uint8),
        )

    plan = ScanPlan(columns, labels, scan, sampled, partial(_check, typed))
    survey, target = take_survey(dataset, train, plan, mapped, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    rows = survey.sample.items(division.is_training)
    *cells, labels_of_rows = [pa.array(each, pa.string()) for each in zip(*rows, strict=True)]
    telling = [name for name, each in zip(names, cells, strict=True) if tells(each, labels_of_rows)]
    fitted = [TableColumn.fit(name, types[name], each) for name, each in zip(names, cells, strict=True)]
    left_out |= {name: "the same in every training row" for name, each in zip(names, fitted, strict=True) if not each}
    table = TableInput([column for column in fitted if column is not None])
    if not table.read:
        raise DataError(f"{listed(dataset.train.all_uris)}: no column can be learned from: {_shown(left_out)}")
    return FittedOn(table, division, survey.digest(target), notes=_notes(table, left_out, len(rows), telling))


def _names(dataset: Dataset, part: SourcePart) -> tuple[list[str], dict[str, str]]:
    """The columns that the model may read, and why others are left out. Raises DataError for columns that the data
    lacks."""
    schema = table_schema(part)
    wanted = [*(dataset.features or []), *(dataset.columns or {}), str(dataset.label)]
    check_columns(wanted, schema.names, part.uri)
    if dataset.features is not None:
        if strange := [name for name in dataset.columns or {} if name not in dataset.features]:
            raise DataError(
                f"spec.dataset.columns has types of {listed(strange)}, which spec.dataset.features does not name"
            )
        return dataset.features, {}
    names, left_out = list[str](), dict[str, str]()
    for field in schema:
        if field.name == dataset.label:
            continue
        if not field.name or field.name.startswith("__index_level_"):
            left_out[field.name or '""'] = "an index that pandas wrote"
        elif pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            left_out[field.name] = f"it holds {field.type}"
        else:
            names.append(field.name)
    check_columns(names, schema.names, part.uri)
    return names, left_out


def _types(
    names: Sequence[str], given: Mapping[str, ColumnType], found: Mapping[str, Found], left_out: dict[str, str]
) -> dict[str, ColumnType]:
    """The type of each column. Adds to `left_out` why a column is left out."""
    types: dict[str, ColumnType] = dict(given)
    for name, each in found.items():
        types[name], why = each.type(name)
        if types[name] == "ignore":
            left_out[name] = why
    return {name: types[name] for name in names}


def _check(columns: Sequence[TableColumn], rows: Rows) -> None:
    """Raises RowError for the first cell that is not of its column's type."""
    for column in columns:
        if column.type in READERS:
            try:
                column.raw(trimmed(as_text(rows.table[column.name], column.name, rows.where)), rows.where)
            except RowError as error:
                name = column.name
                advice = f"correct it, or set dataset.columns to {{{name}: category}} or {{{name}: ignore}}"
                kind = f"{error.kind} ({advice})"
                raise RowError(f"{error}; {advice}", error.location, kind, error.detail) from None


def _notes(table: TableInput, left_out: Mapping[str, str], rows: int, telling: Sequence[str]) -> list[str]:
    by_type: dict[str, list[str]] = {}
    for column in table.read:
        by_type.setdefault(column.type, []).append(column.name)
    notes = [
        f"{len(names):,} column{'s' if len(names) > 1 else ''} of {_PLURALS[kind]}: {listed(names)}"
        for kind, names in by_type.items()
    ]
    notes += [
        f'column "{name}" alone tells the label of every row: if it is not known before the label is, leave it out: '
        f"dataset.columns: {{{name}: ignore}}"
        for name in telling
    ]
    if left_out:
        notes.append(f"columns left out: {_shown(left_out)}")
    for column in table.read:
        if column.categories is not None and len(column.categories.names) == MOST_CATEGORIES:
            notes.append(
                f'column "{column.name}": only the {MOST_CATEGORIES:,} most frequent values are categories of their own'
            )
    return notes


def _shown(left_out: Mapping[str, str]) -> str:
    return listed([f"{name} ({why})" for name, why in left_out.items()])
