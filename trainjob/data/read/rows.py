"""The rows that every reader yields, and the checks that all readers share."""

import difflib
import http.client
import io
import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_arrow
from trainjob.data.read import archives
from trainjob.data.read.lfs_pointer import POINTER, POINTER_BYTES, is_pointer
from trainjob.errors import DataError, RowError
from trainjob.redaction import has_hidden
from trainjob.storage import open_filesystem, storage_errors

TABLE_ROWS = 4096
"""Most rows of one table that a reader yields, where it can choose."""
HTTP_SECONDS = 60


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
        """The same location, whose words end with `detail` in brackets."""
        return self._of(f"{self} ({detail})", self.file, self.number)


@dataclass(frozen=True)
class Rows:
    """Some consecutive rows of a source."""

    table: pa.Table
    where: Callable[[int], RowLocation]
    """Says where the row at an index of `table` comes from."""
    size: int = 0
    """About how many bytes of the part these rows take; 0 where the part does not know."""
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
        """The rows in order, a bounded number at a time; text columns checked to be UTF-8. `on_bad` is told of rows
        that cannot be read.

        Raises DataError naming the file for whatever is wrong with it as a whole.
        """
        ...


def row_number(index: int) -> str:
    """Says where a row is in a table that comes from no file."""
    return f"row {index + 1}"


@contextmanager
def readable(uri: str, kind: str) -> Generator[None]:
    """Turns what Arrow raises over a file's content into a DataError, and over reaching it into a StorageError."""
    try:
        with storage_errors(uri):
            try:
                yield
            except FileNotFoundError:
                raise DataError(f"{uri}: there is nothing here; correct the URI") from None
            except OSError as error:
                if error.errno is not None or "AWS" in str(error) or "google::" in str(error):
                    raise
                raise DataError(f"{uri} is not a valid {kind} file: {error}") from error
    except (pa.ArrowException, EOFError, *archives.UNSOUND) as error:
        raise DataError(f"{uri} is not a valid {kind} file: {error}") from error


def is_http(uri: str) -> bool:
    return uri.startswith(("https://", "http://"))


def open_stream(uri: str, endpoint: str | None) -> pa.NativeFile:
    """The file from its start to its end, decompressed where its name ends in .gz, .bz2, .zst or .zip."""
    if archives.is_zip(uri):
        return archives.only_member(open_seekable(uri, endpoint), uri)
    if is_http(uri):
        return pa.input_stream(_download(uri), compression=_compression(uri))
    filesystem, path = open_filesystem(uri, endpoint)
    stream = filesystem.open_input_stream(path, compression=None)
    codec = _compression(uri)
    return stream if codec is None else Decompressed(stream, codec)


class Decompressed(pa.CompressedInputStream):
    """The content of a compressed stream."""

    def __init__(self, stream: pa.NativeFile, codec: str) -> None:
        self._counting = _Counting(stream)
        super().__init__(pa.PythonFile(self._counting, "r"), codec)

    @property
    def bytes_read(self) -> int:
        """How many compressed bytes have been read."""
        return self._counting.bytes_read


class _Counting(io.RawIOBase):
    """Counts the bytes that are read of a stream."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream, self.bytes_read = stream, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.bytes_read += len(content)
        return content

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_seekable(uri: str, endpoint: str | None) -> pa.NativeFile:
    """The file for reading anywhere in it."""
    if is_http(uri):
        return pa.PythonFile(_download(uri), "r")
    filesystem, path = open_filesystem(uri, endpoint)
    return filesystem.open_input_file(path)


def _download(url: str) -> IO[bytes]:
    """A temporary copy on disk, gone once it is closed: a connection that breaks must not look like the file's end."""
    if has_hidden(url):
        raise DataError(
            f"{url}: a run's folder stores the address without its secrets, so the data cannot be read again; "
            "`trainjob evaluate` and `trainjob run --fresh` accept the full address"
        )
    with ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile())
        try:
            with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as response:
                shutil.copyfileobj(response, copy, 2**20)
                if response.length:
                    raise DataError(f"{url}: the connection broke {response.length} bytes before the end; try again")
        except urllib.error.HTTPError as error:
            error.close()
            raise DataError(f"{url}: the server answers {error.code} {error.reason}; correct the URI") from None
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{url}: cannot be read: {getattr(error, 'reason', error)}") from None
        copy.seek(0)
        if is_pointer(copy.read(POINTER_BYTES)):
            raise DataError(f"{url} is {POINTER}; use an address that has the file itself")
        copy.seek(0)
        stack.pop_all()
        return copy


def _compression(uri: str) -> str | None:
    ending = uri.partition("?")[0].rpartition(".")[2].lower()
    return {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}.get(ending)


def check_columns(wanted: Sequence[str], found: Sequence[str], uri: str) -> None:
    """Raises DataError where `found` lacks some of `wanted`, or has it twice."""
    if missing := [name for name in wanted if name not in found]:
        names = " and ".join(f'"{name}"' for name in missing)
        close = [_shown_name(match) for name in missing for match in difflib.get_close_matches(name, found, n=1)]
        hint = f"; did you mean {' and '.join(close)}?" if close else ""
        raise DataError(f"{uri} has no column {names}; it has {', '.join(map(_shown_name, found)) or 'none'}{hint}")
    if (twice := next((name for name in wanted if found.count(name) > 1), None)) is not None:
        raise DataError(f'{uri} has {found.count(twice)} columns "{twice}": rename all but one')


def _shown_name(name: str) -> str:
    """A column's name, in quotes if it has characters that cannot be seen, or blanks at its start or end."""
    return name if name.isprintable() and name == name.strip() else json.dumps(name)


def found_columns(wanted: Sequence[str], found: Sequence[str], uri: str, optional: Sequence[str]) -> list[str]:
    """The columns that exist. Raises DataError if one that is not `optional` is missing."""
    there = [name for name in wanted if name in found or name not in optional]
    check_columns(there, found, uri)
    return there


def as_text(column: pa.ChunkedArray, name: str, where: Callable[[int], str]) -> pa.ChunkedArray:
    """The column as strings: numbers and truth values in their usual spelling, NaN as null, bytes decoded as UTF-8.

    Raises DataError for bytes that are not UTF-8, for nested values and others that are no text.
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
        if not _is_binary(kind):
            raise DataError(
                f'{where(0)}: column "{name}" contains {kind}, which cannot be converted to text: {error}'
            ) from None
        for index, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                kind = f'column "{name}" is not UTF-8 text'
                detail = f"byte 0x{value[error.start]:02x} at position {error.start}"
                message = f"{where(index)}: {kind}: {detail}; save the file in UTF-8"
                raise RowError(message, where(index), kind, detail) from None
        raise


def _is_valid(column: pa.ChunkedArray) -> bool:
    """Whether all texts are UTF-8."""
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


def _is_binary(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)
