"""The first pass over the rows of a table: types of columns, labels, split and preprocessor."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from trainjob.api import Dataset
from trainjob.data.first_pass.survey import FittedOn, LabelReader, fit_target
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.counted_reading import begin_reading
from trainjob.data.read.label_lists import separate_labels
from trainjob.data.read.rows import SourcePart, check_columns, is_bytes
from trainjob.data.read.table_schema import table_schema
from trainjob.data.read.thousands import Thousands
from trainjob.errors import DataError, listed
from trainjob.kinds.inputs.cells import MISSING, as_categories
from trainjob.kinds.inputs.column_types import LeftOut, typed
from trainjob.kinds.inputs.leaks import ReadLabels, determine_labels
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_columns import MAX_CATEGORIES, TableColumn
from trainjob.kinds.inputs.table_scan import (
    nothing_left,
    reasons,
    sampled_cells,
    scan_table,
    scan_typed,
    used,
    with_type,
)
from trainjob.kinds.look_alikes import look_alike_notes
from trainjob.kinds.table_network import TableNetwork

if TYPE_CHECKING:
    from trainjob.kinds.inputs.cell_texts import CellTexts

_PLURALS = {"number": "numbers", "category": "categories", "date": "dates", "flag": "flags", "text": "texts"}


def fit_table(
    dataset: Dataset,
    model: TableNetwork,
    labels: LabelReader,
    train: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
    bad: BadRows,
) -> FittedOn:
    """Rows with cells that are not of their column's type are counted in `bad`. Raises DataError if no model can be
    fitted."""
    if both := [name for name in dataset.labels or [] if name in [*(dataset.features or []), *(dataset.columns or {})]]:
        raise DataError(
            f"spec.dataset.{'features' if both[0] in (dataset.features or []) else 'columns'}: must not include the "
            f"label {both[0]}: a model that reads the answer learns nothing"
        )
    names, left_out = _names(dataset, train[0])
    scanned = scan_table(dataset, names, left_out, labels, train, seed, mapper)
    while True:
        names, hashes = used(scanned.types), scanned.survey.hashes
        if len(hashes) > 1 and hashes.min() == hashes.max():
            raise nothing_left(dataset, left_out | dict.fromkeys(names, LeftOut("the same in all rows")))
        try:
            survey, target = fit_target(dataset, scanned.survey, scanned.labels, scanned.bad)
        except DataError:
            bad.merge(scanned.bad)
            raise
        division = survey.divide(target, dataset.validation.fraction, seed)
        rows = survey.sample.items(division.is_training)
        cells, answers = sampled_cells(rows, len(names), len(separate_labels(dataset)))
        columns = [TableColumn.fit(name, scanned.types[name], each) for name, each in zip(names, cells, strict=True)]
        constant = [name for name, column in zip(names, columns, strict=True) if column is None]
        if not constant:
            break
        # Later passes do not read these columns: the hashes of the rows must do without them, too.
        why = LeftOut(f"the same in all {len(rows):,} training rows that were read")
        left_out |= dict.fromkeys(constant, why)
        types = with_type(scanned.types, constant, "ignore")
        if not used(types):
            raise nothing_left(dataset, left_out)
        begin_reading([train])
        scanned = scan_typed(types, [], dataset, labels, train, seed, mapper)
    bad.merge(scanned.bad)
    shown_labels = [f' "{name}"' for name in dataset.labels] if dataset.labels else [""]
    read_labels = [ReadLabels.of(each) for each in answers]
    leaks = [
        (name, label)
        for name, each in zip(names, cells, strict=True)
        for label, of_rows in zip(shown_labels, read_labels, strict=True)
        if determine_labels(each, of_rows)
    ]
    texts = [each for name, each in zip(names, cells, strict=True) if scanned.types[name] == "text"]
    if len(texts) == len(names):
        raise DataError(
            f"spec.dataset.columns: all columns that can be learned from are texts ({listed(names)}), which "
            "textClassifier and textRegressor learn: name them in dataset.text"
        )
    tokenized, some_texts = _fitted_texts(model, texts) if texts else (None, [])
    table = TableInput([column for column in columns if column is not None], tokenized)
    notes = [*_notes(table, left_out, len(rows), leaks), *_look_alikes(columns, cells), *_thousands(columns, cells)]
    return FittedOn(table, division, survey.digest(target), some_texts, notes)


def _fitted_texts(model: TableNetwork, columns: Sequence[pa.Array]) -> "tuple[CellTexts, list[str]]":
    """Fits a tokenizer on the columns of texts, and returns the texts, too."""
    from trainjob.kinds.inputs.cell_texts import CellTexts, cleaned

    encoder = model.text_encoder
    texts = cleaned([cell for column in columns for cell in column.to_pylist() if cell], encoder.max_length)
    return CellTexts.fit(encoder, model.text_path, texts), texts


def _look_alikes(columns: Sequence[TableColumn | None], cells: Sequence[pa.Array]) -> Iterator[str]:
    for column, each in zip(columns, cells, strict=True):
        if column is not None and column.categories is not None:
            rows = Counter(as_categories(each).to_pylist())
            for note in look_alike_notes("categories", {name: rows[name] for name in column.categories.names}):
                yield f'column "{column.name}": {note}'


def _thousands(columns: Sequence[TableColumn | None], cells: Sequence[pa.Array]) -> Iterator[str]:
    for column, each in zip(columns, cells, strict=True):
        if column is not None and column.type == "number":
            found = Thousands()
            different = (cell.as_py() for cell in each.unique().drop_null())  # most columns need but a few of them
            found.add(cell for cell in different if cell.lower() not in MISSING)
            if note := found.note():
                yield f'column "{column.name}": {note}'


def _names(dataset: Dataset, part: SourcePart) -> tuple[list[str], dict[str, LeftOut]]:
    """The columns that the model may read, and why others are left out. Raises DataError for columns that the data
    lacks."""
    schema = table_schema(part)
    wanted = [*(dataset.features or []), *(dataset.columns or {}), *separate_labels(dataset)]
    check_columns(wanted, schema.names, part.uri)
    if dataset.features is not None:
        if strange := [name for name in dataset.columns or {} if name not in dataset.features]:
            raise DataError(
                f"spec.dataset.columns has types of {listed(strange)}, which spec.dataset.features does not name"
            )
        return dataset.features, {}
    names, left_out = list[str](), dict[str, LeftOut]()
    for field in schema:
        if field.name in separate_labels(dataset):
            continue
        if field.name in (dataset.columns or {}):
            names.append(field.name)
        elif not field.name or field.name.startswith("__index_level_"):
            why = "an index that pandas wrote" if field.name else "it has no name"
            left_out[field.name or '""'] = LeftOut(why)
        elif pa.types.is_nested(field.type):
            left_out[field.name] = LeftOut("it holds lists or objects")
        elif is_bytes(field.type):
            left_out[field.name] = LeftOut("it holds bytes")
        else:
            names.append(field.name)
    check_columns(names, schema.names, part.uri)
    return names, left_out


def _notes(
    table: TableInput, left_out: Mapping[str, LeftOut], rows: int, leaks: Sequence[tuple[str, str]]
) -> list[str]:
    by_type: dict[str, list[str]] = {}
    for column in table.read:
        by_type.setdefault(column.type, []).append(column.name)
    notes = [
        f"{len(names):,} column{'s' if len(names) > 1 else ''} of {_PLURALS[kind]}: {listed(names)}"
        for kind, names in by_type.items()
    ]
    notes += [
        f'column "{name}" alone determines the label{label} of every row: if it is not known before the label is, '
        f"leave it out: dataset.columns: {typed(name, 'ignore')}"
        for name, label in leaks
    ]
    if left_out:
        notes.append(f"columns left out: {reasons(left_out, 'the type text reads texts')}")
    for column in table.read:
        if column.categories is not None and len(column.categories.names) == MAX_CATEGORIES:
            notes.append(
                f'column "{column.name}": only the {MAX_CATEGORIES:,} most frequent values are categories of their own'
            )
        elif column.categories is not None and not column.categories.names:
            notes.append(f'column "{column.name}": each value is in one row, so nothing can be learned from it')
    return notes
