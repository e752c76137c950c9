"""The rows that every reader yields, and the checks that all readers share."""

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_arrow, text_bytes
from trainjob.errors import DataError, RowError

TABLE_ROWS = 4096
"""Most rows of one table that a reader yields, where it can choose."""


class RowLocation(str):
    """The location of a row: a text for users, with file and number as attributes."""

    __slots__ = ("file", "number")
    file: str
    """The file's URI."""
    number: int | None
    """The row's number in the file, from 1; None if the file is one row."""

    def __new__(cls, file: str, unit: str = "row", number: int | None = None) -> "RowLocation":
        return cls._of(file if number is None else f"{file}, {unit} {number}", file, number)

    @classmethod
    def _of(cls, words: str, file: str, number: int | None) -> "RowLocation":
        location = super().__new__(cls, words)
        location.file, location.number = file, number
        return location

    def with_detail(self, detail: str) -> "RowLocation":
        """The same location, with `detail` in brackets at the end of its text."""
        return self._of(f"{self} ({detail})", self.file, self.number)


@dataclass(frozen=True)
class Rows:
    """Some consecutive rows of a source."""

    table: pa.Table
    where: Callable[[int], RowLocation]
    """Returns the location of the row at an index of `table`."""
    size: int = 0
    """The approximate number of the part's bytes that these rows take; 0 if unknown."""
    derived: dict[Any, Any] = field(default_factory=dict[Any, Any], compare=False, repr=False)
    """Values computed from these rows, so that several steps share them."""

    def take(self, indices: np.ndarray) -> "Rows":
        """The rows at `indices`."""
        if len(indices) == len(self.table) and bool((indices == np.arange(len(indices))).all()):
            return self
        return Rows(self.table.take(as_arrow(indices)), lambda index: self.where(int(indices[index])))


OnBadRow = Callable[[RowError], None]
"""Called with the error of each unusable row. The row is left out, unless the error is raised."""


def refuse(error: RowError) -> None:
    raise error


def leave_out(_: RowError) -> None:
    """Leaves out a row without reporting it."""


class SourcePart(Protocol):
    """A unit of reading: a file, or a share of a file's rows or of a folder's files. Picklable."""

    @property
    def uri(self) -> str: ...

    @property
    def size(self) -> int:
        """Bytes that are read."""
        ...

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        """The rows in order, a bounded number at a time; text columns are checked to be UTF-8. `on_bad` gets rows that
        cannot be read.

        Raises DataError, which names the file, if the file as a whole is unusable.
        """
        ...


@dataclass(frozen=True)
class WrappedPart:
    """A part that changes the rows of another part when they are read. A subclass implements `read`."""

    part: SourcePart

    @property
    def uri(self) -> str:
        return self.part.uri

    @property
    def size(self) -> int:
        return self.part.size


ReadTable = Callable[[SourcePart, list[str], OnBadRow], Iterator[Rows]]
"""Reads a part of a table, with these columns in any case."""


def read_table(part: SourcePart, columns: list[str], on_bad: OnBadRow) -> Iterator[Rows]:
    """The usual ReadTable."""
    return part.read(columns, on_bad)


def row_number(index: int) -> str:
    """The location of a row in a table that was not read from a file."""
    return f"row {index + 1}"


def check_columns(wanted: Sequence[str], found: Sequence[str], uri: str) -> None:
    """Raises DataError where `found` lacks some of `wanted`, or has it twice."""
    if missing := [name for name in wanted if name not in found]:
        names = " or ".join(f'"{name}"' for name in missing)
        close = [_shown_name(match) for name in missing for match in difflib.get_close_matches(name, found, n=1)]
        hint = f"; did you mean {' and '.join(close)}?" if close else ""
        raise DataError(f"{uri} has no column {names}; it has {', '.join(map(_shown_name, found)) or 'none'}{hint}")
    if (twice := next((name for name in wanted if found.count(name) > 1), None)) is not None:
        if not twice.strip():
            raise DataError(f"{uri} has {found.count(twice)} columns without a name: give each one")
        raise DataError(f'{uri} has {found.count(twice)} columns "{twice}": rename all but one')


def _shown_name(name: str) -> str:
    """A column's name, in quotes if it has characters that cannot be seen, or blanks at its start or end."""
    if not name:
        return "a column without a name"
    return name if name.isprintable() and name == name.strip() else json.dumps(name)


def found_columns(wanted: Sequence[str], found: Sequence[str], uri: str, optional: Sequence[str]) -> list[str]:
    """The columns that exist. Raises DataError if one that is not `optional` is missing."""
    there = [name for name in wanted if name in found or name not in optional]
    check_columns(there, found, uri)
    return there


def as_text(column: pa.ChunkedArray, name: str, where: Callable[[int], str]) -> pa.ChunkedArray:
    """The column as strings: numbers and truth values in their usual spelling, NaN as null, bytes decoded as UTF-8.

    Raises DataError for bytes that are not UTF-8, for nested values, and for others that have no text form.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return as_text(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type), name, where)
    if pa.types.is_dictionary(kind):
        return as_text(column.cast(kind.value_type), name, where)
    if pa.types.is_string(kind) and _is_valid(column):
        return column
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column, kind = column.cast(pa.large_binary()), pa.large_binary()
    if pa.types.is_nested(kind):
        raise DataError(f'{where(0)}: column "{name}" contains {kind}, not text')
    if pa.types.is_decimal(kind):
        return pa.chunked_array([pa.array(map(_plain, column.to_pylist()), pa.string())])
    if pa.types.is_floating(kind):
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        if not is_bytes(kind):
            raise DataError(
                f'{where(0)}: column "{name}" contains {kind}, which cannot be converted to text: {error}'
            ) from None
        for index, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                kind = f'column "{name}" is not UTF-8 text'
                detail = f"byte 0x{value[error.start]:02x} at position {error.start}"
                message, advice = f"{where(index)}: {kind}: {detail}", "save the file in UTF-8"
                raise RowError(f"{message}; {advice}", where(index), kind, detail, advice=advice) from None
        raise


def _is_valid(column: pa.ChunkedArray) -> bool:
    """Whether all texts are UTF-8. ASCII is, which is much faster to see."""
    if all(not len(characters) or characters.max() < 0x80 for *_, characters in map(text_bytes, column.chunks)):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _plain(number: Decimal | None) -> str | None:
    """A number without an exponent and the zeros that its column's scale adds."""
    if number is None:
        return None
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def as_json(column: pa.ChunkedArray, name: str, where: Callable[[int], str]) -> pa.ChunkedArray:
    """The column as text, lists and objects in JSON. Raises DataError for what neither can be."""
    if not pa.types.is_nested(column.type):
        return as_text(column, name, where)
    try:
        texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    except TypeError as error:
        raise DataError(
            f'{where(0)}: column "{name}" contains {column.type}, which JSON cannot represent: {error}'
        ) from None


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values of a type are bytes, such as files or UUIDs. They are read as text where they are UTF-8."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_bytes(kind.storage_type)
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)
