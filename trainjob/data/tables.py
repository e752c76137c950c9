"""Readers of CSV, JSON Lines and Parquet."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from trainjob.data.rows import TABLE_ROWS, Rows, as_text, check_columns, open_seekable, open_stream, readable
from trainjob.errors import DataError

CSV_BLOCK_BYTES = 8 * 2**20
"""Also the largest row of a CSV file."""
ROW_GROUPS_BYTES = 64 * 2**20
"""Row groups of a Parquet file are read together up to about this size."""


def _text_table(table: pa.Table, columns: Sequence[str], where: Callable[[int], str]) -> pa.Table:
    return pa.table({name: as_text(table[name], name, where) for name in columns})


@dataclass(frozen=True)
class CSVFile:
    """A comma-separated file with a header; quoted values may hold line breaks. Rows count from 1 after the header."""

    uri: str
    endpoint: str | None
    size: int

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns in inferred types where it is None."""
        with readable(self.uri, "CSV"):
            if columns is not None:
                check_columns(columns, self._header(), self.uri)
            first = 1
            for table in self._tables(columns):
                where = self._where(first)
                yield Rows(table if columns is None else _text_table(table, columns, where), where)
                first += len(table)

    def _where(self, first: int) -> Callable[[int], str]:
        return lambda index: f"{self.uri}, row {first + index}"

    def _header(self) -> list[str]:
        with open_stream(self.uri, self.endpoint) as file:
            lines = io.TextIOWrapper(io.BufferedReader(file), encoding="utf-8-sig", errors="replace", newline="")
            header = next(csv.reader(lines), None)
        if header is None:
            raise DataError(f"{self.uri} is empty: not even a header")
        return header

    def _tables(self, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        convert = arrow_csv.ConvertOptions()
        if columns is not None:
            # As bytes: text is decoded by `as_text`, which can name the row.
            convert = arrow_csv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.binary())
            )
        options = (
            arrow_csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES),  # threads would lose count of rows
            arrow_csv.ParseOptions(newlines_in_values=True),
            convert,
        )
        try:
            with open_stream(self.uri, self.endpoint) as file:
                for batch in arrow_csv.open_csv(file, *options):
                    for start in range(0, len(batch), TABLE_ROWS):
                        yield pa.Table.from_batches([batch.slice(start, TABLE_ROWS)])
        except pa.ArrowInvalid as error:
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

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns in inferred types where it is None."""
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            lines = ((number, line) for number, line in enumerate(io.BufferedReader(file), 1) if line.strip())
            for start, batch in enumerate(iter(lambda: list(itertools.islice(lines, TABLE_ROWS)), [])):
                objects = [self._parse(number, line) for number, line in batch]
                where = self._where([number for number, _ in batch])
                if columns is None:
                    yield Rows(pa.Table.from_pylist(objects), where)
                    continue
                if start == 0:
                    check_columns(columns, list(dict.fromkeys(name for row in objects for name in row)), self.uri)
                yield Rows(self._texts(objects, columns, where), where)

    def _where(self, numbers: list[int]) -> Callable[[int], str]:
        return lambda index: f"{self.uri}, line {numbers[index]}"

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"{self.uri}, line {number}"
        try:
            row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            byte = line[error.start]
            message = f"not UTF-8 text: byte 0x{byte:02x} at position {error.start}; save the file in UTF-8"
            raise DataError(f"{where}: {message}") from None
        except ValueError as error:
            raise DataError(f"{where}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: must be a JSON object such as {{}}, not {type(row).__name__}")
        return row

    def _texts(self, objects: list[dict[str, Any]], columns: Sequence[str], where: Callable[[int], str]) -> pa.Table:
        def text(index: int, name: str) -> str | None:
            value = objects[index].get(name)
            if isinstance(value, dict | list):
                raise DataError(f'{where(index)}: "{name}" holds {type(value).__name__}, not text')
            if isinstance(value, str):
                # A lone surrogate can be written in JSON but is not text.
                return value if value.isascii() else value.encode("utf-8", "replace").decode()
            return None if value is None else json.dumps(value)

        indices = range(len(objects))
        return pa.table({name: pa.array([text(i, name) for i in indices], pa.string()) for name in columns})


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
                parts.append(ParquetRows(self.uri, self.endpoint, size, tuple(groups), first))
                groups, size, first = [], 0, row
        return parts

    def read(self, columns: Sequence[str] | None) -> Iterator[Rows]:
        """`columns` as text; all columns as they are where it is None."""
        with readable(self.uri, "Parquet"), open_seekable(self.uri, self.endpoint) as file:
            parquet = pq.ParquetFile(file)
            if columns is not None:
                check_columns(columns, parquet.schema_arrow.names, self.uri)
            first = self.first
            for batch in parquet.iter_batches(TABLE_ROWS, self.row_groups, columns, use_threads=False):
                table = pa.Table.from_batches([batch])
                where = self._where(first)
                yield Rows(table if columns is None else _text_table(table, columns, where), where)
                first += len(table)

    def _where(self, first: int) -> Callable[[int], str]:
        return lambda index: f"{self.uri}, row {first + index}"
