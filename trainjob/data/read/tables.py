"""Readers of CSV and Parquet."""

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from trainjob import interrupts
from trainjob.data.read.bad_csv_rows import BadCSVRows
from trainjob.data.read.bad_rows import valid_rows
from trainjob.data.read.csv_header import doubt_about_header, title_above_header
from trainjob.data.read.csv_injection import is_of_predictions, unescaped, unescaped_names
from trainjob.data.read.hub_features import HubFeatures, hub_features, item_names
from trainjob.data.read.opening import Decompressed, open_seekable, open_stream, readable
from trainjob.data.read.rows import (
    TABLE_ROWS,
    OnBadRow,
    RowLocation,
    Rows,
    as_json,
    as_text,
    check_columns,
    found_columns,
    refuse,
)
from trainjob.data.read.text_check import check_text
from trainjob.errors import DataError, RowError, listed, notify

CSV_BLOCK_BYTES = 8 * 2**20
"""Also the largest row of a CSV file."""
CSV_ROWS = 4 * TABLE_ROWS
"""Most rows of one table of a CSV file: the blocks bound its memory, and work on a column of more rows costs less."""
HEADER_BYTES = 2**20
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""The first line of a file for Excel, which names the separator."""
DELIMITERS = ",;\t|"
IMAGE_ROWS = 64
"""Most rows of one table of images, which may be large once they are decoded."""
IMAGE_BUFFER_BYTES = 2**20
ROW_GROUPS_BYTES = 64 * 2**20
"""Row groups of a Parquet file are read together up to about this size."""
if interrupts.are_handled():  # pyarrow would take signals over while it reads, and may lose one at the end
    pa.enable_signal_handlers(False)


def _text_rows(
    rows: Rows,
    columns: Sequence[str],
    on_bad: OnBadRow,
    nested: Sequence[str] = (),
    image: str | None = None,
    features: HubFeatures = MappingProxyType({}),
) -> Rows:
    """The rows with `columns` as text, except that of the images. `on_bad` gets rows that cannot be text. With
    the `features` of the Hugging Face hub, lists of numbers that have names are lists of names."""

    def as_texts(some: Rows) -> pa.Table:
        return pa.table({name: converted(some, name) for name in columns})

    def converted(some: Rows, name: str) -> pa.ChunkedArray:
        if name == image:
            return some.table[name]
        if name not in nested:
            return as_text(some.table[name], name, some.where)
        names = item_names(features, name)
        return as_json(some.table[name] if names is None else _named(some.table[name], names), name, some.where)

    try:
        return Rows(as_texts(rows), rows.where)
    except RowError:
        valid = rows.take(valid_rows(rows, as_texts, on_bad))
        return Rows(as_texts(valid), valid.where)


def _named(lists: pa.ChunkedArray, names: Sequence[str]) -> pa.ChunkedArray:
    """The names of the numbers in lists; a number without a name stays one."""
    known = dict(enumerate(names))
    named = [
        None if each is None else [str(known.get(number, number)) for number in each] for each in lists.to_pylist()
    ]
    return pa.chunked_array([pa.array(named, pa.list_(pa.string()))])


@dataclass(frozen=True)
class CSVFile:
    """A file with a header and values between commas, or, where the header has none, semicolons, tabs or vertical bars;
    quoted values may hold line breaks; blank lines are skipped. A first line `sep=;` names the separator. Rows count
    from 1 after the header."""

    uri: str
    endpoint: str | None
    size: int
    optional: tuple[str, ...] = ()
    """Columns that may be missing."""
    is_first: bool = True
    """Whether it is the first file of its source: only its header is checked for doubts."""

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        """`columns` as text; all columns in inferred types where it is None."""
        with readable(self.uri, "CSV"):
            written, delimiter, skipped = self._header()
            header = _names_of(written)
            columns = columns and found_columns(columns, header, self.uri, self.optional)
            check_columns(header if columns is None else columns, header, self.uri)
            chosen = None if columns is None else [written[header.index(name)] for name in columns]
            bad = BadCSVRows(self.uri, on_bad, delimiter, skipped)
            numbers = (number for number in itertools.count(1) if number not in bad.numbers)
            for table, size in self._tables(chosen, delimiter, skipped, bad):
                rows = bad.without(Rows(table, self._where(list(itertools.islice(numbers, len(table))))))
                if chosen is not None:
                    rows = _text_rows(rows, chosen, on_bad)
                table = unescaped(rows.table) if is_of_predictions(written) else rows.table
                yield Rows(table, rows.where, size)

    def names(self) -> list[str]:
        """Names of the columns."""
        with readable(self.uri, "CSV"):
            header = _names_of(self._header()[0])
            check_columns(header, header, self.uri)
            return header

    def _where(self, numbers: list[int]) -> Callable[[int], RowLocation]:
        return lambda index: RowLocation(self.uri, "row", numbers[index])

    def _header(self) -> tuple[list[str], str, int]:
        """Names of the columns, what stands between them, and how many lines come before them."""
        with open_stream(self.uri, self.endpoint) as file:
            head = file.read(HEADER_BYTES)
        check_text(head, self.uri)
        text = head.decode("utf-8-sig", errors="replace")
        separator = _SEPARATOR_LINE.match(text)
        if separator and not separator[1].isascii():
            raise DataError(f'{self.uri} names "{separator[1]}" as its separator, which must be an ASCII character')
        delimiters, skipped = (separator[1], 1) if separator else (DELIMITERS, 0)
        lines = io.StringIO(text[separator.end() :] if separator else text, newline="")
        headers: dict[str, list[str]] = {}
        problem = None
        for delimiter in delimiters:
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
        if "\ufffd" in "".join(headers[chosen]) and "\ufffd".encode() not in head:
            problem = f"the names of the columns are not UTF-8 text ({listed(headers[chosen])})"
            raise DataError(f"{self.uri}: {problem}: save the file in UTF-8")
        if self.is_first:
            delimiters = [chosen] if len(headers[chosen]) > 1 else list(headers)
            self._tell_doubts(text[separator.end() :] if separator else text, delimiters)
        return headers[chosen], chosen, skipped

    def _tell_doubts(self, text: str, delimiters: Sequence[str]) -> None:
        """Gives a Notice if the first line of the text does not look like the names of the columns, which stand between
        the first of the delimiters."""

        def reader(delimiter: str) -> Iterator[list[str]]:
            return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)

        titles = (title_above_header(reader(delimiter)) for delimiter in delimiters)
        if doubt := next(filter(None, titles), None) or doubt_about_header(reader(delimiters[0])):
            notify(f"{self.uri}: {doubt}")

    def _tables(
        self, columns: Sequence[str] | None, delimiter: str, skipped: int, bad: BadCSVRows
    ) -> Iterator[tuple[pa.Table, int]]:
        """The rows, and how many bytes of the file they take."""
        convert = arrow_csv.ConvertOptions()
        if columns is not None:
            # As bytes: text is decoded by `as_text`, which can name the row.
            convert = arrow_csv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.binary())
            )
        options = (
            arrow_csv.ReadOptions(
                use_threads=False,  # threads would lose count of rows
                block_size=CSV_BLOCK_BYTES,
                skip_rows=skipped,
            ),
            arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=bad.add,
            ),
            convert,
        )
        try:
            with open_stream(self.uri, self.endpoint) as file:
                done = 0
                for batch in bad.batches(file, *options):
                    size = file.bytes_read - done if isinstance(file, Decompressed) else CSV_BLOCK_BYTES
                    done += size
                    for start in range(0, len(batch), CSV_ROWS):
                        table = pa.Table.from_batches([batch.slice(start, CSV_ROWS)])
                        yield table, size * len(table) // len(batch)
        except pa.ArrowInvalid as error:
            if bad.refused is not None:
                raise bad.refused from None
            if "Empty CSV file" in str(error):  # a header alone, without a line break at its end
                return
            if "straddling" not in str(error):
                raise
            limit = f"{CSV_BLOCK_BYTES // 2**20} MiB"
            raise DataError(
                f"{self.uri} has a row longer than {limit}: look for a quote that is never closed"
            ) from error


def _names_of(header: list[str]) -> list[str]:
    """The column names, without the escaping against CSV injection if trainjob wrote the file."""
    return unescaped_names(header) if is_of_predictions(header) else header


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
    image: str | None = None
    """The column of images, which is read as it is, few rows at a time."""

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

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        """`columns` as text; all columns as they are where it is None."""
        with readable(self.uri, "Parquet"), open_seekable(self.uri, self.endpoint) as file:
            # Without a buffer, Arrow holds the whole column of a row group.
            parquet = pq.ParquetFile(file, buffer_size=IMAGE_BUFFER_BYTES if self.image else 0)
            row_bytes = self.size / max(1, self._rows(parquet.metadata))
            names = parquet.schema_arrow.names
            columns = columns and found_columns(columns, names, self.uri, self.optional)
            check_columns(names if columns is None else columns, names, self.uri)
            first, features = self.first, hub_features(parquet.schema_arrow)
            most = IMAGE_ROWS if self.image else TABLE_ROWS
            for batch in parquet.iter_batches(most, self.row_groups, columns, use_threads=False):
                rows = Rows(pa.Table.from_batches([batch]), self._where(first))
                rows = rows if columns is None else _text_rows(rows, columns, on_bad, self.nested, self.image, features)
                yield Rows(rows.table, rows.where, int(row_bytes * len(batch)))
                first += len(batch)

    def _rows(self, metadata: pq.FileMetaData) -> int:
        groups = self.row_groups
        if groups is None:
            return metadata.num_rows
        return sum(metadata.row_group(number).num_rows for number in groups)

    def schema(self) -> pa.Schema:
        """Names, types and metadata of the columns."""
        with readable(self.uri, "Parquet"), open_seekable(self.uri, self.endpoint) as file:
            return pq.read_schema(file)

    def _where(self, first: int) -> Callable[[int], RowLocation]:
        return lambda index: RowLocation(self.uri, "row", first + index)
