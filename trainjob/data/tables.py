"""Readers of CSV, JSON Lines and Parquet."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from trainjob import interrupts
from trainjob.data.formulas import is_of_predictions, unescaped, unescaped_names
from trainjob.data.rows import (
    TABLE_ROWS,
    Place,
    Rows,
    as_json,
    as_text,
    check_columns,
    found_columns,
    open_seekable,
    open_stream,
    readable,
)
from trainjob.errors import DataError

CSV_BLOCK_BYTES = 8 * 2**20
"""Also the largest row of a CSV file, and the longest line of JSON Lines."""
JSON_TABLE_BYTES = 64 * 2**20
"""Lines of JSON that are read together, however few rows they are."""
HEADER_BYTES = 2**20
DELIMITERS = ",;\t"
ROW_GROUPS_BYTES = 64 * 2**20
"""Row groups of a Parquet file are read together up to about this size."""
if interrupts.are_handled():  # pyarrow would take signals over while it reads, and may lose one at the end
    pa.enable_signal_handlers(False)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _text_table(
    table: pa.Table, columns: Sequence[str], where: Callable[[int], str], nested: Sequence[str] = ()
) -> pa.Table:
    return pa.table({name: (as_json if name in nested else as_text)(table[name], name, where) for name in columns})


@dataclass(frozen=True)
class CSVFile:
    """A file with a header and values between commas, or, where the header has none, semicolons or tabs; quoted values
    may hold line breaks; blank lines are skipped. Rows count from 1 after the header."""

    uri: str
    endpoint: str | None
    size: int
    optional: tuple[str, ...] = ()
    """Columns that may be missing."""

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns in inferred types where it is None."""
        with readable(self.uri, "CSV"):
            written, delimiter = self._header()
            header = _names_of(written)
            columns = columns and found_columns(columns, header, self.uri, self.optional)
            check_columns(header if columns is None else columns, header, self.uri)
            chosen = None if columns is None else [written[header.index(name)] for name in columns]
            first = 1
            for table in self._tables(chosen, delimiter):
                where = self._where(first)
                table = table if chosen is None else _text_table(table, chosen, where)
                yield Rows(unescaped(table) if is_of_predictions(written) else table, where)
                first += len(table)

    def names(self) -> list[str]:
        """Names of the columns."""
        with readable(self.uri, "CSV"):
            header = _names_of(self._header()[0])
            check_columns(header, header, self.uri)
            return header

    def _where(self, first: int) -> Callable[[int], Place]:
        return lambda index: Place(self.uri, "row", first + index)

    def _header(self) -> tuple[list[str], str]:
        """Names of the columns, and what stands between them."""
        with open_stream(self.uri, self.endpoint) as file:
            head = file.read(HEADER_BYTES)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{self.uri} is UTF-16 text: save the file in UTF-8")
        lines = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="")
        headers: dict[str, list[str]] = {}
        problem = None
        for delimiter in DELIMITERS:
            lines.seek(0)
            try:
                rows = csv.reader(lines, delimiter=delimiter, strict=True)
                headers[delimiter] = next((row for row in rows if row), [])
            except csv.Error as error:
                problem = problem or error
        if not headers:
            hint = "look for a quote that is never closed"
            raise DataError(f"{self.uri}: the header cannot be read: {problem}; {hint}")
        chosen = next((delimiter for delimiter, header in headers.items() if len(header) > 1), next(iter(headers)))
        if not headers[chosen]:
            raise DataError(f"{self.uri} is empty: not even a header")
        return headers[chosen], chosen

    def _tables(self, columns: Sequence[str] | None, delimiter: str) -> Iterator[pa.Table]:
        convert = arrow_csv.ConvertOptions()
        if columns is not None:
            # As bytes: text is decoded by `as_text`, which can name the row.
            convert = arrow_csv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.binary())
            )
        options = (
            arrow_csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES),  # threads would lose count of rows
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert,
        )
        try:
            with open_stream(self.uri, self.endpoint) as file:
                for batch in arrow_csv.open_csv(file, *options):
                    for start in range(0, len(batch), TABLE_ROWS):
                        yield pa.Table.from_batches([batch.slice(start, TABLE_ROWS)])
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):  # a header alone, without a line break at its end
                return
            if "straddling" not in str(error):
                raise
            limit = f"{CSV_BLOCK_BYTES // 2**20} MiB"
            raise DataError(
                f"{self.uri} has a row longer than {limit}: look for a quote that is never closed"
            ) from error


@dataclass(frozen=True)
class JSONLinesFile:
    """A JSON object on each line; blank lines are skipped. Lines count from 1."""

    uri: str
    endpoint: str | None
    size: int
    nested: tuple[str, ...] = ()
    """Columns that may hold lists and objects, which are read as JSON."""
    optional: tuple[str, ...] = ()
    """Columns that may be missing: they are null."""

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns in inferred types where it is None."""
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            for start, batch in enumerate(_batches(self._lines(file))):
                objects = [self._parse(number, line) for number, line in batch]
                where = self._where([number for number, _ in batch])
                if columns is None:
                    yield Rows(self._inferred(objects, where), where)
                    continue
                if start == 0:
                    found_columns(columns, list(_names(objects)), self.uri, self.optional)
                yield Rows(self._texts(objects, columns, where), where)

    def names(self) -> list[str]:
        """Names of the columns that hold no lists and no objects on any line."""
        plain: dict[str, bool] = {}
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            for number, line in self._lines(file):
                for name, value in self._parse(number, line).items():
                    plain[name] = plain.get(name, True) and not isinstance(value, (dict, list))
        return [name for name, is_plain in plain.items() if is_plain]

    def _lines(self, file: pa.NativeFile) -> Iterator[tuple[int, bytes]]:
        """Number and content of each line that is not blank, without a byte order mark."""
        buffered = io.BufferedReader(file)
        for number, line in enumerate(iter(lambda: buffered.readline(CSV_BLOCK_BYTES + 1), b""), 1):
            if len(line) > CSV_BLOCK_BYTES:
                limit = f"{CSV_BLOCK_BYTES // 2**20} MiB"
                raise DataError(f"{self.uri}, line {number} is longer than {limit}: shorten its values")
            content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if content.strip():
                yield number, content

    def _where(self, numbers: list[int]) -> Callable[[int], Place]:
        return lambda index: Place(self.uri, "line", numbers[index])

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"{self.uri}, line {number}"
        try:
            row = json.loads(line.decode())
            if _SURROGATE.search(line):  # without its other half it is not text, nor would Arrow take it
                row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
        except UnicodeDecodeError as error:
            byte = line[error.start]
            message = f"not UTF-8 text: byte 0x{byte:02x} at position {error.start}; save the file in UTF-8"
            raise DataError(f"{where}: {message}") from None
        except RecursionError:
            raise DataError(f"{where}: nested too deeply") from None
        except ValueError as error:
            raise DataError(f"{where}: not JSON: {str(error).partition(';')[0]}") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: must be a JSON object such as {{}}, not {type(row).__name__}")
        return row

    def _inferred(self, objects: list[dict[str, Any]], where: Callable[[int], str]) -> pa.Table:
        def column(name: str) -> pa.Array:
            try:
                return pa.array([row.get(name) for row in objects])
            except (OverflowError, pa.ArrowException) as error:
                raise DataError(
                    f'{self.uri}: "{name}" has values of several types, or numbers beyond 64 bits, between {where(0)} '
                    f"and {where(len(objects) - 1)}: {error}"
                ) from None

        names = _names(objects)
        if not names:
            raise DataError(f"{where(0)}: the object is empty, as are all that follow up to {where(len(objects) - 1)}")
        return pa.table({name: column(name) for name in names})

    def _texts(self, objects: list[dict[str, Any]], columns: Sequence[str], where: Callable[[int], str]) -> pa.Table:
        def text(index: int, name: str) -> str | None:
            value = objects[index].get(name)
            if isinstance(value, (dict, list)) and name not in self.nested:
                raise DataError(f'{where(index)}: "{name}" holds {type(value).__name__}, not text')
            return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)

        indices = range(len(objects))
        return pa.table({name: pa.array([text(i, name) for i in indices], pa.string()) for name in columns})


def _names_of(header: list[str]) -> list[str]:
    """What the columns of a CSV file were called before they were written."""
    return unescaped_names(header) if is_of_predictions(header) else header


def _batches(lines: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """The lines, so many at a time as fit into a table and into memory."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines:
        batch.append((number, line))
        size += len(line)
        if len(batch) == TABLE_ROWS or size >= JSON_TABLE_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _names(objects: Iterable[dict[str, Any]]) -> dict[str, None]:
    return dict.fromkeys(name for row in objects for name in row)


@dataclass(frozen=True)
class ParquetRows:
    """A Parquet file or some of its row groups. Rows count from 1 in the file."""

    uri: str
    endpoint: str | None
    size: int
    row_groups: tuple[int, ...] | None = None
    """All where None."""
    first: int = 1
    """Number of the first row."""
    nested: tuple[str, ...] = ()
    """Columns that may hold lists and objects, which are read as JSON."""
    optional: tuple[str, ...] = ()
    """Columns that may be missing."""

    def split(self) -> "list[ParquetRows]":
        """The same rows in parts of about ROW_GROUPS_BYTES, as far as the file's row groups allow."""
        if self.size <= ROW_GROUPS_BYTES:
            return [self]
        with readable(self.uri, "Parquet"), open_seekable(self.uri, self.endpoint) as file:
            metadata = pq.read_metadata(file)
        parts: list[ParquetRows] = []
        groups: list[int] = []
        size, first, row = 0, 1, 1
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            groups.append(number)
            size += group.total_byte_size
            row += group.num_rows
            if size >= ROW_GROUPS_BYTES or number == metadata.num_row_groups - 1:
                parts.append(replace(self, size=size, row_groups=tuple(groups), first=first))
                groups, size, first = [], 0, row
        return parts

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns as they are where it is None."""
        with readable(self.uri, "Parquet"), open_seekable(self.uri, self.endpoint) as file:
            parquet = pq.ParquetFile(file)
            names = parquet.schema_arrow.names
            columns = columns and found_columns(columns, names, self.uri, self.optional)
            check_columns(names if columns is None else columns, names, self.uri)
            first = self.first
            for batch in parquet.iter_batches(TABLE_ROWS, self.row_groups, columns, use_threads=False):
                table = pa.Table.from_batches([batch])
                where = self._where(first)
                yield Rows(table if columns is None else _text_table(table, columns, where, self.nested), where)
                first += len(table)

    def _where(self, first: int) -> Callable[[int], Place]:
        return lambda index: Place(self.uri, "row", first + index)
