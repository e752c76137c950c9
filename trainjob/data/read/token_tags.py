"""Reads lists of tokens with a tag each as texts with spans: the tokens joined by single spaces, and the spans that the
tags mark, in characters of that text.

A tag is O, or a prefix and a type, such as B-person. The prefixes are those of IOB1, IOB2 (BIO), BIOES, BILOU and
BMEWO. Tags that break their scheme are read as conlleval and seqeval read them: a span also begins at any other prefix
where none of its type is open.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from trainjob.data.read.label_lists import parsed_cell
from trainjob.data.read.rows import OnBadRow, ReadTable, Rows, WrappedPart, as_json, read_table, refuse
from trainjob.errors import RowError, listed, notify
from trainjob.schema.spans import Span, written

_TAG = re.compile(r"([BIESLUMW])[-_](.+)", re.DOTALL)
NOT_TEXT = "a token is not text"
_BEGINS, _ENDS = "BSUW", "ESLUW"


class BadTags(Exception):
    """Tags that cannot be read; `kind` says what is wrong in general, `detail` where."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind)
        self.kind, self.detail = kind, detail


def is_tag(tag: object) -> bool:
    return isinstance(tag, str) and (tag == "O" or _TAG.fullmatch(tag) is not None)


def tagged_runs(tags: Sequence[str]) -> Iterator[Span]:
    """The first token, the end and the type of each span of these tags."""
    start, current = 0, None
    for place, tag in enumerate([*tags, "O"]):
        found = _TAG.fullmatch(tag)
        prefix, kind = found.groups() if found else ("O", None)
        if current is not None and (kind != current or prefix in _BEGINS):
            yield start, place, current
            current = None
        if kind is not None and current is None:
            start, current = place, kind
        if kind is not None and prefix in _ENDS:
            yield start, place + 1, kind
            current = None


def tokens_in(cell: str | None) -> list[str] | None:
    """The tokens that a cell lists; None if it is a plain text."""
    value = parsed_cell(cell) if cell is not None and cell.startswith("[") else None
    if not isinstance(value, list) or (value and not any(isinstance(token, str) for token in value)):
        return None
    if not all(isinstance(token, str) for token in value):
        raise BadTags(NOT_TEXT, f"{next(token for token in value if not isinstance(token, str))!r}")
    return value


def spans_of_tags(tokens: Sequence[str], cell: str) -> list[Span]:
    """The spans in characters of the tokens joined by spaces. Raises BadTags."""
    tags = parsed_cell(cell)
    if not isinstance(tags, list):
        raise BadTags("the text is a list of tokens, so the cell must list their tags", cell[:40])
    if any(isinstance(tag, int) for tag in tags):
        raise BadTags(
            "the tags are numbers without names",
            "write the names, such as B-person, or Parquet from the library datasets, which stores them",
        )
    if len(tags) != len(tokens):
        raise BadTags("the numbers of tokens and tags differ", f"{len(tokens):,} tokens, {len(tags):,} tags")
    if unknown := list(dict.fromkeys(str(tag) for tag in tags if not is_tag(tag))):
        advice = "write I- before each, or B- where a span begins right after another of its type"
        raise BadTags("a tag must be O, or B-, I-, E- or S- and a type", f"{listed(unknown)}; {advice}")
    starts = [0, *accumulate(len(token) + 1 for token in tokens)]
    return [(starts[first], starts[end] - 1, kind) for first, end, kind in tagged_runs(tags)]


@dataclass(frozen=True)
class TokenRows(WrappedPart):
    """Rows of a table whose column `text` may list tokens: when they are read, it has the text, and `label` its
    spans."""

    text: str
    label: str | None
    """None for rows to predict."""
    read_table: ReadTable = read_table

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        wanted = [self.text] if columns is None else list(columns)
        for rows in self.read_table(self.part, wanted, on_bad):
            yield joined_rows(rows, self.text, self.label, on_bad)


def joined_rows(rows: Rows, text: str, label: str | None, on_bad: OnBadRow) -> Rows:
    """The rows with lists of tokens joined, and their tags as spans. `on_bad` is called for each row where that cannot
    be done."""
    table = rows.table
    texts: list[str | None] = as_json(table[text], text, rows.where).to_pylist()
    labels: list[str | None] = [None] * len(table)
    converted = {text: texts}
    if label is not None and label in table.column_names:
        labels = converted[label] = as_json(table[label], label, rows.where).to_pylist()
    usable, joined = list[int](), False
    for index, (content, cell) in enumerate(zip(texts, labels, strict=True)):
        try:
            tokens = tokens_in(content)
            if tokens is not None:
                texts[index], joined = " ".join(tokens), True
                labels[index] = None if cell is None else written(spans_of_tags(tokens, cell))
        except BadTags as error:
            column = text if error.kind == NOT_TEXT else label
            where, kind = rows.where(index), f'column "{column}": {error.kind}'
            on_bad(RowError(f"{where}: {kind}: {error.detail}", where, kind, error.detail))
        else:
            usable.append(index)
    if label is None and joined:
        notify(f'the tokens in the column "{text}" are joined by single spaces: spans are characters of that text')
    for name, cells in converted.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(cells, pa.string()))
    return Rows(table, rows.where, rows.size).take(np.array(usable, np.int64))
