"""Rows of a CSV file that Arrow cannot read, or reads wrongly without saying so."""

import io
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from trainjob.data.read.csv_quotes import QuoteCheck
from trainjob.data.read.rows import OnBadRow, Place, Rows
from trainjob.errors import RowError


class BadCSVRows:
    """Finds these rows while a file is read. Rows count from 1 after the header."""

    def __init__(self, uri: str, on_bad: OnBadRow, delimiter: str, skipped: int) -> None:
        """`skipped` is the number of lines before the header."""
        self._uri, self._on_bad, self._skipped = uri, on_bad, skipped
        self._quotes = QuoteCheck(delimiter)
        self.numbers: set[int] = set()
        """Of rows that Arrow leaves out."""
        self.refused: RowError | None = None
        """What `on_bad` has raised: an exception would not get through Arrow."""

    def add(self, row: arrow_csv.InvalidRow) -> Literal["skip", "error"]:
        """What Arrow does with a row of another number of values than the header has."""
        number = row.number - 1 - self._skipped
        self.numbers.add(number)
        place, found = Place(self._uri, "row", number), f"{row.actual_columns} values"
        kind = f"the row does not have {row.expected_columns} values, as the header has"
        error = RowError(f"{place}: {kind}, but {row.actual_columns}", place, kind, found)
        try:
            self._on_bad(self._quote_error(place, number) or error)
        except RowError as error:
            self.refused = error
            return "error"
        return "skip"

    def without(self, rows: Rows) -> Rows:
        """The rows without those that have a bad quote, of which `on_bad` is told."""
        if not self._quotes.bad:
            return rows
        sound: list[int] = []
        for index in range(len(rows.table)):
            place = rows.where(index)
            if error := self._quote_error(place, place.number or 0):
                self._on_bad(error)
            else:
                sound.append(index)
        return rows.take(np.array(sound, np.int64))

    def batches(self, file: pa.NativeFile, *options: Any) -> Iterator[pa.RecordBatch]:
        """What Arrow reads. It cannot tell the handler of invalid rows of one that is not UTF-8: it prints a traceback,
        which is kept back here, and raises the error that it has without a handler."""
        with _silent():
            batches = arrow_csv.open_csv(pa.PythonFile(_Watched(file, self._quotes), "r"), *options)
        while True:
            with _silent():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _quote_error(self, place: Place, number: int) -> RowError | None:
        found = self._quotes.bad.get(number + self._skipped)
        if found is None:
            return None
        detail = f": {found.detail}" if found.detail else ""
        return RowError(f"{place}: {found.kind}{detail}", place, found.kind, found.detail)


class _Watched(io.RawIOBase):
    """A stream whose bytes a check looks at before anyone else does."""

    def __init__(self, stream: pa.NativeFile, check: QuoteCheck) -> None:
        self._stream, self._check = stream, check

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self._check.look_at(content)
        return content


@contextmanager
def _silent() -> Generator[None]:
    """Keeps back what Python prints of text that cannot be decoded where nothing can be raised."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda found: None if isinstance(found.exc_value, UnicodeDecodeError) else hook(found)
    try:
        yield
    finally:
        sys.unraisablehook = hook
