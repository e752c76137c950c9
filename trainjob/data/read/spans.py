"""Reads the spans of texts: where each begins and ends, in characters, and its type.

A cell holds a list of spans, or an object with one in `entities`, `spans` or `label`. A span is `[start, end, type]`,
as doccano and spaCy write, or an object with `start` and `end` (or `start_offset` and `end_offset`) and `label`, `type`
or `labels`, as Label Studio, Prodigy and spaCy write. The end is exclusive. The `text` of such an object must be the
text between start and end.
"""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trainjob.data.read.annotation_tools import RESULT
from trainjob.data.read.rows import OnBadRow, Rows, as_json, as_text
from trainjob.errors import RowError, listed
from trainjob.formatting import cut
from trainjob.schema.spans import Span, written

_LISTS = ("entities", "spans", "label", "labels", RESULT)
_STARTS, _ENDS, _TYPES = ("start", "start_offset"), ("end", "end_offset"), ("label", "type", "labels")
_SHOWN = 40
_NOT_COMPARED = re.compile(r"\s|\\[nr]")
"""Blanks, and line ends as Label Studio writes them in the text of a span."""

_OTHER_UNITS = (
    (
        "UTF-16 code units",
        "utf-16-le",
        2,
        "convert the offsets of all rows, each by `len(text.encode('utf-16-le')[: 2 * offset].decode('utf-16-le'))`",
    ),
    (
        "bytes of UTF-8",
        "utf-8",
        1,
        "convert the offsets of all rows, each by `len(text.encode()[:offset].decode())`",
    ),
)
"""Units that tools count in place of characters: name, encoding, bytes, and how to convert them."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""In the place of parts of a character."""


class _BadSpan(Exception):
    def __init__(self, kind: str, detail: str, advice: str = "") -> None:
        super().__init__(kind)
        self.kind, self.detail, self.advice = kind, detail, advice


def read_spans(
    rows: Rows, text: str, column: str, on_bad: OnBadRow, types: Sequence[str] | None = None
) -> tuple[Rows, np.ndarray]:
    """The rows with usable spans in `column`, and these spans in JSON as of `written`, objects [n]. `on_bad` is called
    for each other row. With `types`, all others are errors."""
    texts = as_text(rows.table[text], text, rows.where).to_pylist()
    cells = as_json(rows.table[column], column, rows.where).to_pylist()
    usable: list[int] = []
    found: list[str] = []
    for index, (content, cell) in enumerate(zip(texts, cells, strict=True)):
        try:
            spans = spans_of(content or "", cell)
            if unknown := [span for span in spans if types is not None and span[2] not in types]:
                advice = f"known types are {listed(types or [])}"
                raise _BadSpan("the training rows have no span of this type", f'"{unknown[0][2]}"', advice)
        except _BadSpan as error:
            where, kind = rows.where(index), f'column "{column}": {error.kind}'
            message = f"{where}: {kind}: {error.detail}" + (f"; {error.advice}" if error.advice else "")
            on_bad(RowError(message, where, kind, error.detail, advice=error.advice))
        else:
            usable.append(index)
            found.append(written(spans))
    labels = np.empty(len(found), object)
    labels[:] = found
    return rows.take(np.array(usable, np.int64)), labels


def spans_given(table: pa.Table, text: str, column: str, where: Callable[[int], str]) -> list[list[Span]]:
    """The spans of rows that `read_spans` has found usable; none of others, as of rows to predict."""
    if column not in table.column_names:
        return [[]] * len(table)
    texts = as_text(table[text], text, where).to_pylist()
    cells = as_json(table[column], column, where).to_pylist()
    return [_spans_or_none(content or "", cell) for content, cell in zip(texts, cells, strict=True)]


def _spans_or_none(text: str, cell: str | None) -> list[Span]:
    try:
        return spans_of(text, cell)
    except _BadSpan:
        return []


def is_spans(text: str, cell: str | None) -> bool:
    """Whether the cell holds usable spans of the text."""
    try:
        spans_of(text, cell)
    except _BadSpan:
        return False
    return True


def spans_of(text: str, cell: str | None) -> list[Span]:
    """The spans in the JSON of a cell, in order and without blanks at their ends. Raises _BadSpan."""
    if cell is None or not cell.strip():
        raise _BadSpan("the cell is empty", "write [] for a text without spans")
    try:
        value = json.loads(cell)
    except ValueError:
        raise _BadSpan("not a list of spans", f"{cell[:_SHOWN]!r} is not JSON") from None
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), value)
    if not isinstance(value, list):
        raise _BadSpan("not a list of spans", f"{cell[:_SHOWN]!r}")
    spans = sorted(_span(text, item) for item in value)
    for (start, end, kind), (next_start, next_end, other) in itertools.pairwise(spans):
        if next_start < end:
            detail = f"[{start}, {end}, {kind}] and [{next_start}, {next_end}, {other}]"
            raise _BadSpan("spans overlap", detail)
    return spans


def _span(text: str, item: Any) -> Span:
    shown = cut(json.dumps(item, ensure_ascii=False), 2 * _SHOWN)
    start, end, kind = _fields(item, shown)
    given = item.get("text") if isinstance(item, dict) else None
    given = given if isinstance(given, str) else None
    inner = text[start:end]
    differs = given is not None and not _are_alike(given, inner)
    if end > len(text) or differs:
        _refuse_other_units(text, start, end, given, shown)
    if end > len(text):
        raise _BadSpan("a span ends after the text", f"{shown}, but the text has {len(text):,} characters")
    if start < 0:
        raise _BadSpan("a span starts before the text", shown)
    if not inner.strip():
        raise _BadSpan("a span is empty or blank", shown)
    if differs:
        detail = f'{shown}, but the text has "{inner[:_SHOWN]}" there; offsets count Unicode characters from 0'
        raise _BadSpan("the text of a span differs from the text at its offsets", detail)
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip()), kind


def _are_alike(given: str, inner: str) -> bool:
    """Whether the text of a span is the one at its offsets."""
    return _NOT_COMPARED.sub("", given) == _NOT_COMPARED.sub("", inner)


def _refuse_other_units(text: str, start: int, end: int, given: str | None, shown: str) -> None:
    """Raises _BadSpan where the offsets fit the text if they count other units than characters."""
    for unit, encoding, width, convert in _OTHER_UNITS:
        content = text.encode(encoding)
        if not 0 <= start < end <= len(content) // width or len(content) == width * len(text):
            continue
        inner = content[width * start : width * end].decode(encoding, "replace")
        if inner.strip() and (_REPLACED not in inner if given is None else _are_alike(given, inner)):
            detail = f'{shown}, which is "{cut(inner, _SHOWN)}" if counted so'
            raise _BadSpan(f"the offsets of a span look like {unit}, not characters", detail, convert)


def _fields(item: Any, shown: str) -> tuple[int, int, str]:
    if isinstance(item, dict):
        start, end, kind = (_first_of(item, names) for names in (_STARTS, _ENDS, _TYPES))
    elif isinstance(item, list) and len(item) >= 3:
        start, end, kind = item[:3]
    else:
        raise _BadSpan("not a span", f"{shown}; a span is [start, end, type], or an object with start, end and label")
    if isinstance(kind, list):
        if len(kind) != 1:
            raise _BadSpan("a span needs exactly one type", shown)
        kind = kind[0]
    if not (isinstance(start, int) and isinstance(end, int)) or isinstance(start, bool) or isinstance(end, bool):
        raise _BadSpan("a span's start and end must be whole numbers of characters", shown)
    if not isinstance(kind, str) or not kind.strip():
        raise _BadSpan("a span's type must be a text", shown)
    return start, end, kind.strip()


def _first_of(item: dict[str, Any], names: Sequence[str]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)
