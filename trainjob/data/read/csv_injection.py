"""Texts in CSV that a spreadsheet would take for formulas: written with an apostrophe, and read back without.

The characters are those of OWASP's page on CSV injection. The apostrophes are removed only from files that `trainjob
predict` has written, which their columns show; all others are read as they are.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

PREDICTION, PROBABILITY, OF_CLASS, OF_COLUMN = "prediction", "probability", "probability_", "prediction_"
"""Names and prefixes of the columns that `trainjob predict` adds."""
_BEGINNINGS = r"=+\-@\t\r\n"
_NUMBER = r"\A[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z"
"""Texts that begin like a formula but are plain numbers: as a formula, they have the same value."""


def _pattern(kind: pa.DataType) -> str:
    """Matches texts to escape, including those that begin with apostrophes, so that unescaping restores them."""
    wide = "" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "\uff1d\uff0b\uff0d\uff20"
    return rf"\A('*[{_BEGINNINGS}{wide}])"


def escaped(table: pa.Table) -> pa.Table:
    """Escapes texts and column names that begin like a formula."""
    return pa.table(
        [_escaped_column(column) for column in table.columns], [_escaped_name(name) for name in table.column_names]
    )


def unescaped(table: pa.Table) -> pa.Table:
    """Reverses `escaped`."""
    columns = [
        _replaced(column, _pattern(column.type).replace(r"\A(", r"\A'("), r"\1") if _is_text(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, unescaped_names(table.column_names))


def unescaped_names(names: Sequence[str]) -> list[str]:
    pattern = _pattern(pa.string()).replace(r"\A(", r"\A'(")
    return [re.sub(pattern, r"\1", name) for name in names]


def is_of_predictions(header: Sequence[str]) -> bool:
    """Whether `trainjob predict` wrote the CSV file with this header."""
    return PREDICTION in header and any(name.startswith(OF_CLASS) for name in header)


def _escaped_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _escaped_column(column.cast(kind.value_type))
    if not _is_text(kind):
        return column
    with_apostrophe = _replaced(column, _pattern(kind), r"'\1")
    return pc.call_function("if_else", [_is_number(column), column, with_apostrophe])


def _escaped_name(name: str) -> str:
    return str(_escaped_column(pa.chunked_array([[name]]))[0])


def _replaced(column: pa.ChunkedArray, pattern: str, replacement: str) -> pa.ChunkedArray:
    options = pc.ReplaceSubstringOptions(pattern, replacement)
    return pc.call_function("replace_substring_regex", [column], options)


def _is_number(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.call_function("match_substring_regex", [column], pc.MatchSubstringOptions(_NUMBER))


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)
