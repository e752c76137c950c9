"""Reads JSON Lines and single arrays of objects."""

import codecs
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trainjob.data.read import json_arrays
from trainjob.data.read.annotation_tools import as_row, checked_row, settled_row, with_empty_results
from trainjob.data.read.opening import Decompressed, open_stream, readable
from trainjob.data.read.rows import TABLE_ROWS, OnBadRow, RowLocation, Rows, found_columns, leave_out, refuse
from trainjob.data.read.text_check import check_text
from trainjob.errors import DataError, RowError

LINE_BYTES = 8 * 2**20
"""The longest line or array item."""
JSON_TABLE_BYTES = 64 * 2**20
"""The bytes of rows that are read together."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class JSONLinesFile:
    """A JSON object per line, ignoring blank lines, or one array of objects. Lines and items count from 1."""

    uri: str
    endpoint: str | None
    size: int
    nested: tuple[str, ...] = ()
    """Columns that may hold lists and objects, read as JSON."""
    optional: tuple[str, ...] = ()
    """Columns that may be missing; their cells are then null."""
    labelled: bool = False
    """Whether rows without an answer that counts, as annotation tools write them, are refused."""

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        """Reads `columns` as text; None reads all columns in inferred types."""
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            unit, texts = self._rows(file)
            done, has_read, has_begun = 0, False, False
            for batch in _batches(texts):
                size = sum(len(text) for _, text in batch)
                if isinstance(file, Decompressed):
                    size = file.bytes_read - done
                done += size
                if not has_read:
                    _refuse_names_twice(batch[0][1], RowLocation(self.uri, unit, batch[0][0]))
                    has_read = True
                numbers, objects = self._objects(unit, batch, columns, on_bad)
                where = self._where(unit, numbers)
                if not objects:
                    continue
                if columns is None:
                    yield Rows(self._inferred(objects, where), where, size)
                    continue
                if not has_begun:
                    found_columns(columns, list(_names(objects)), self.uri, self.optional)
                    has_begun = True
                nested = [name for name in columns if name in self.nested]
                yield Rows(_texts(with_empty_results(objects, nested), columns), where, size)

    def _objects(
        self, unit: str, batch: list[tuple[int, bytes]], columns: Sequence[str] | None, on_bad: OnBadRow
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """The readable rows and their numbers."""
        numbers: list[int] = []
        objects: list[dict[str, Any]] = []
        for number, text in batch:
            where = RowLocation(self.uri, unit, number)
            try:
                row = self._parse(where, text)
                row = settled_row(row) if columns is None or not self.labelled else checked_row(row, columns, where)
                self._check(row, columns or (), where)
            except RowError as error:
                on_bad(error)
                continue
            numbers.append(number)
            objects.append(row)
        return numbers, objects

    def names(self) -> list[str]:
        """Names of the columns that hold no lists or objects on any line, except `nested` ones."""
        return [name for name, is_plain in self.plain_columns().items() if is_plain]

    def plain_columns(self) -> dict[str, bool]:
        """Maps each column to whether it is one of the `nested` ones or has no lists and objects on any line."""
        plain: dict[str, bool] = {}
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            unit, texts = self._rows(file)
            for number, text in texts:
                for name, value in self._parse(RowLocation(self.uri, unit, number), text).items():
                    is_plain = name in self.nested or not isinstance(value, (dict, list))
                    plain[name] = plain.get(name, True) and is_plain
        return plain

    def schema(self) -> pa.Schema:
        """Names and types of the columns in the first rows. Lists and objects of values of several types, which Arrow
        has no type for, have the type list<null>; columns where only some values are lists or objects list<string>."""
        with readable(self.uri, "JSON Lines"), open_stream(self.uri, self.endpoint) as file:
            unit, texts = self._rows(file)
            batch = next(_batches(texts), [])
            _, objects = self._objects(unit, batch, None, leave_out)
        kinds: dict[str, pa.DataType] = {}
        for name in _names(objects):
            values = [row[name] for row in objects if row.get(name) is not None]
            try:
                kinds[name] = pa.array(values).type
            except (OverflowError, pa.ArrowException):
                nested = sum(isinstance(value, (dict, list)) for value in values)
                kinds[name] = pa.list_(pa.null() if nested == len(values) else pa.string()) if nested else pa.string()
        return pa.schema(kinds)

    def _rows(self, file: pa.NativeFile) -> tuple[str, Iterator[tuple[int, bytes]]]:
        """Whether rows are lines or array items, and the number and text of each."""
        buffered = io.BufferedReader(file)
        check_text(buffered.peek(1), self.uri)
        if json_arrays.is_array(buffered):
            return "item", json_arrays.items(buffered, self.uri, LINE_BYTES)
        return "line", self._lines(buffered)

    def _lines(self, buffered: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
        """The number and content of each line that is not blank, without a byte order mark."""
        for number, line in enumerate(iter(lambda: buffered.readline(LINE_BYTES + 1), b""), 1):
            if len(line) > LINE_BYTES:
                limit = f"{LINE_BYTES // 2**20} MiB"
                raise DataError(f"{self.uri}, line {number} is longer than {limit}: shorten its values")
            content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if number == 1 and content.strip() == b"{":
                raise DataError(
                    f"{self.uri} has a JSON object that spans several lines: write one object per line, or one array "
                    "of all rows"
                )
            if content.strip():
                yield number, content

    def _where(self, unit: str, numbers: list[int]) -> Callable[[int], RowLocation]:
        return lambda index: RowLocation(self.uri, unit, numbers[index])

    def _parse(self, where: str, line: bytes) -> dict[str, Any]:
        try:
            row = json.loads(line.decode())
            if _SURROGATE.search(line):  # without its other half it is not text, nor would Arrow take it
                row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
            if isinstance(row, dict):
                return as_row(row, where)
        except UnicodeDecodeError as error:
            byte = line[error.start]
            found = f"byte 0x{byte:02x} at position {error.start}"
            message = f"{where}: not UTF-8 text: {found}; save the file in UTF-8"
            raise RowError(message, where, "not UTF-8 text", found) from None
        except RecursionError:
            raise RowError(f"{where}: nested too deeply", where, "nested too deeply") from None
        except ValueError as error:
            problem = str(error).partition(";")[0]
            raise RowError(f"{where}: not JSON: {problem}", where, "not JSON", problem) from None
        if not isinstance(row, dict):
            kind = "not a JSON object such as {}"
            advice = '; write spaCy\'s pairs as {"text": …, "entities": …}' if _is_pair_of_spacy(row) else ""
            found = f"must be a JSON object such as {{}}, not {type(row).__name__}{advice}"
            raise RowError(f"{where}: {found}", where, kind + advice)
        return row

    def _check(self, row: dict[str, Any], columns: Sequence[str], where: str) -> None:
        """Raises RowError if a text column holds a list or an object."""
        for name in columns:
            value = row.get(name)
            if isinstance(value, (dict, list)) and name not in self.nested:
                kind = f'"{name}" contains {type(value).__name__}, not text'
                raise RowError(f"{where}: {kind}", where, kind)

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


def _is_pair_of_spacy(row: Any) -> bool:
    """Whether a row is a text and an object, as spaCy's training data was written."""
    return isinstance(row, list) and [type(value) for value in row] == [str, dict]


def _refuse_names_twice(line: bytes, where: str) -> None:
    """Raises DataError if an object has the same name twice; Python would keep only the last value."""
    names: list[list[str]] = []
    with suppress(ValueError, RecursionError):  # which reading the rows tells
        json.loads(line, object_pairs_hook=lambda pairs: names.append([name for name, _ in pairs]))
    outer = names[-1] if names else []
    if twice := [name for name in dict.fromkeys(outer) if outer.count(name) > 1]:
        raise DataError(f'{where} has {outer.count(twice[0])} values "{twice[0]}": rename all but one')


def _texts(objects: list[dict[str, Any]], columns: Sequence[str]) -> pa.Table:
    def text(value: Any) -> str | None:
        if isinstance(value, float) and math.isnan(value):
            return None
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return pa.table({name: pa.array([text(row.get(name)) for row in objects], pa.string()) for name in columns})


def _batches(lines: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Groups lines into batches that fit into a table and into memory."""
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
