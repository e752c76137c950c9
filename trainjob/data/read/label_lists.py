"""Reads the labels of rows that may have several: cells that list them, or a column for each label."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset
from trainjob.data.read.annotation_tools import RESULT
from trainjob.data.read.rows import OnBadRow, Rows, SourcePart, WrappedPart, as_text, refuse
from trainjob.errors import RowError
from trainjob.formatting import cut

LABELS = "dataset.labels"
"""The column of lists that is made of the columns in `dataset.labels`."""
JoinColumns = Callable[[Rows, Sequence[str], OnBadRow], Rows]
"""Gives rows the column LABELS, made of a column for each label. Calls `on_bad` for each row that it leaves out."""
SEPARATOR = "|"
Notation = Literal["list", "choices", "separated", "plain"]
"""The notation of labels in a cell: a list, or an object with a 0 or 1 for each; Label Studio's object of choices,
where a single choice is plain text; labels separated by `|`; or one label."""
ON, OFF = ("1", "true", "yes"), ("0", "false", "no")
_MAX_CHARACTERS = 60
_CHOICES = "choices"
_ZERO = re.compile(r"-?0(\.0*)?([eE][+-]?\d+)?")
_WHOLE = re.compile(r"(-?[1-9]\d*)\.0*")


def label_column(dataset: Dataset) -> str | None:
    """The name of the column with the labels of a row, as its readers return it."""
    return LABELS if dataset.labels else dataset.label


def separate_labels(dataset: Dataset) -> list[str]:
    """The columns of the files that hold the labels of a row."""
    return dataset.labels or [str(dataset.label)]


def with_labels(dataset: Dataset, parts: Sequence[SourcePart], join: JoinColumns) -> list[SourcePart]:
    """The parts of a table, with the column LABELS if it has a column for each label."""
    return [SeparateLabels(part, tuple(dataset.labels), join) for part in parts] if dataset.labels else list(parts)


def notation_of(cell: str) -> Notation:
    """The notation of a cell that is not empty."""
    value = parsed_cell(cell)
    if isinstance(value, dict) and _CHOICES in value:
        return "choices"
    if value is not None:
        return "list"
    return "separated" if SEPARATOR in cell else "plain"


def labels_in(cell: str, notation: Notation) -> list[str]:
    """The labels in a cell. Raises ValueError with the problem, a phrase, if a label is not a single name, or occurs
    twice."""
    if notation == "plain":
        return [cell]
    names = [part.strip() for part in cell.split(SEPARATOR)] if notation == "separated" else _names(parsed_cell(cell))
    if "" in names:
        raise ValueError("a label is empty")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f'the label "{twice}" occurs twice')
    return names


def canonical(label: str) -> str:
    """A whole number as `1`, even if it is written `1.0`, `-0.0` or `0E-9`, as in float columns of Parquet; other
    labels are unchanged: 1.10 and 1.1 may be versions, 007 and 1e5 codes."""
    if _ZERO.fullmatch(label):
        return "0"
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def only_label(cell: str) -> str:
    """The label of a cell that lists one; any other cell as it is."""
    notation = notation_of(cell)
    with suppress(ValueError):
        names = labels_in(cell, notation) if notation in ("list", "choices") else []
        return names[0] if len(names) == 1 else cell
    return cell


def _names(value: Any) -> list[str]:
    if value == {RESULT: []}:
        raise ValueError("no label is chosen")
    if isinstance(value, dict):
        value = value.get(_CHOICES, value)
    if isinstance(value, dict):
        if any(on not in (0, 1) for on in value.values()):
            raise ValueError("the values of the labels must be 0 or 1, or true or false")
        value = [name for name, on in value.items() if on]
    return [_name(item) for item in (value if isinstance(value, (list, tuple, set)) else [value])]


def _name(item: Any) -> str:
    if isinstance(item, bool) or not isinstance(item, str | int | float) or (item != item):
        raise ValueError(f"{json.dumps(item, default=str)} is not the name of a label")
    return canonical(str(item).strip())


def parsed_cell(cell: str) -> Any:
    """The list, tuple, set or object that is written in JSON or Python; None for anything else."""
    if cell[:1] + cell[-1:] not in ("[]", "{}", "()"):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(cell)
    try:
        value = _written_by_numpy(cell)
        value = ast.literal_eval(cell) if value is None else value
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return value if isinstance(value, (list, tuple, set, dict)) else None


def _written_by_numpy(cell: str) -> list[Any] | None:
    """The items of an array as NumPy writes it, with blanks between them: Python would join the texts to one."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(" ".join(cell.split())).readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    items = [token.string for token in tokens if token.string.strip()][1:-1]
    kinds = [token.type for token in tokens if token.string.strip()][1:-1]
    if len(items) < 2 or not set(kinds) <= {tokenize.STRING, tokenize.NUMBER}:
        return None
    return [ast.literal_eval(item) for item in items]


def list_error(location: str, column: str, problem: str) -> RowError:
    """The error of a row whose list of labels cannot be used."""
    kind = f'the labels (column "{column}") cannot be used'
    return RowError(f"{location}: {kind}: {problem}; correct the list or drop the row", location, kind, problem)


def empty_label_error(location: str, column: str, advice: str = "") -> RowError:
    """The error of a row whose label is missing."""
    kind = f'the label (column "{column}") is empty'
    message = f"{location}: {kind}: fill it in or drop the row"
    return RowError(f"{message}; {advice}" if advice else message, location, kind, advice=advice)


@dataclass(frozen=True)
class SeparateLabels(WrappedPart):
    """Rows of a table with a column for each label. When they are read, `join` makes LABELS of these columns."""

    labels: tuple[str, ...]
    join: JoinColumns

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        if columns is None or LABELS not in columns:
            yield from self.part.read(columns, on_bad)
            return
        wanted = list(dict.fromkeys([*(name for name in columns if name != LABELS), *self.labels]))
        for rows in self.part.read(wanted, on_bad):
            yield self.join(rows, self.labels, on_bad)


def with_lists(rows: Rows, labels: Sequence[str], on_bad: OnBadRow) -> Rows:
    """The rows with the column LABELS: JSON lists of the labels whose column holds 1, true or yes. `on_bad` is called
    for each row with a cell that is neither that nor 0, false or no."""
    flags = np.zeros((len(rows.table), len(labels)), bool)
    wrong = dict[int, tuple[str, str | None]]()
    for number, name in enumerate(labels):
        cells = as_text(rows.table[name], name, rows.where).to_pylist()
        words = [canonical((cell or "").strip().lower()) for cell in cells]
        flags[:, number] = [word in ON for word in words]
        for index, word in enumerate(words):
            if word not in ON and word not in OFF:
                wrong.setdefault(index, (name, cells[index]))
    for index in sorted(wrong):
        on_bad(_flag_error(rows.where(index), *wrong[index]))
    names = np.array(labels, object)
    lists = [json.dumps(names[row].tolist(), ensure_ascii=False) for row in flags]
    found = Rows(rows.table.append_column(LABELS, pa.array(lists, pa.string())), rows.where, rows.size)
    return found.take(np.setdiff1d(np.arange(len(rows.table)), list(wrong)))


def _flag_error(location: str, column: str, cell: str | None) -> RowError:
    text = (cell or "").strip()
    if not text or text.lower() in ("nan", "none", "null"):
        kind = f'the label (column "{column}") is empty'
        return RowError(f"{location}: {kind}: write 0 or 1, or drop the row", location, kind)
    shown = cut(text, _MAX_CHARACTERS)
    kind = f'the label (column "{column}") is neither 0 nor 1'
    return RowError(f'{location}: {kind}: "{shown}"; write 0 or 1', location, kind, f'"{shown}"')
