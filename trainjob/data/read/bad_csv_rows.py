"""CSV rows that Arrow cannot read, or silently reads wrong."""

import io
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from trainjob.data.read.csv_quotes import QuoteCheck
from trainjob.data.read.rows import OnBadRow, RowLocation, Rows
from trainjob.errors import RowError


class BadCSVRows:
    """Finds unreadable rows while a file is read. Rows count from 1 after the header."""

    def __init__(self, uri: str, on_bad: OnBadRow, delimiter: str, skipped: int) -> None:
        """`skipped` is the number of lines before the header."""
        self._uri, self._on_bad, self._skipped = uri, on_bad, skipped
        self._quotes = QuoteCheck(delimiter)
        self.numbers: set[int] = set()
        """Rows that Arrow skips."""
        self.refused: RowError | None = None
        """The exception that `on_bad` raised; exceptions cannot pass through Arrow."""

    def add(self, row: arrow_csv.InvalidRow) -> Literal["skip", "error"]:
        """Arrow's handler for a row whose number of values differs from the header's."""
        number = row.number - 1 - self._skipped
        self.numbers.add(number)
        location = RowLocation(self._uri, "row", number)
        found = "1 value" if row.actual_columns == 1 else f"{row.actual_columns} values"
        kind = f"the row does not have {row.expected_columns} values, as the header has"
        error = RowError(f"{location}: {kind}, but {row.actual_columns}", location, kind, found)
        try:
            self._on_bad(self._quote_error(location, number) or error)
        except RowError as error:
            self.refused = error
            return "error"
        return "skip"

    def without(self, rows: Rows) -> Rows:
        """The rows without those with a bad quote, which are reported to `on_bad`."""
        if not self._quotes.bad:
            return rows
        valid: list[int] = []
        for index in range(len(rows.table)):
            location = rows.where(index)
            if error := self._quote_error(location, location.number or 0):
                self._on_bad(error)
            else:
                valid.append(index)
        return rows.take(np.array(valid, np.int64))

    def batches(self, file: pa.NativeFile, *options: Any) -> Iterator[pa.RecordBatch]:
        """Arrow's batches. For an invalid row that is not UTF-8, Arrow cannot call the handler: it prints a traceback,
        which is suppressed here, and raises the error that it raises without a handler."""
        with _silent():
            batches = arrow_csv.open_csv(pa.PythonFile(_CheckedStream(file, self._quotes), "r"), *options)
        while True:
            with _silent():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _quote_error(self, location: RowLocation, number: int) -> RowError | None:
        found = self._quotes.bad.get(number + self._skipped)
        if found is None:
            return None
        detail = f": {found.detail}" if found.detail else ""
        return RowError(f"{location}: {found.kind}{detail}", location, found.kind, found.detail)


class _CheckedStream(io.RawIOBase):
    """A stream that shows its bytes to a check before passing them on. No piece ends in a carriage return, except the
    last one: Arrow would lose a line feed at the start of the next piece, also within a quoted value."""

    def __init__(self, stream: pa.NativeFile, check: QuoteCheck) -> None:
        self._stream, self._check, self._kept = stream, check, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        read = self._stream.read(size - len(self._kept))
        self._check.feed(read)
        content, self._kept = self._kept + read, b""
        if read and content.endswith(b"\r") and len(content) > 1:
            content, self._kept = content[:-1], b"\r"
        return content


@contextmanager
def _silent() -> Generator[None]:
    """Suppresses Python's output about undecodable text where it cannot raise an exception."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda found: None if isinstance(found.exc_value, UnicodeDecodeError) else hook(found)
    try:
        yield
    finally:
        sys.unraisablehook = hook
