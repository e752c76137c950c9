"""Opens files of data: local ones, of object stores and of web servers, compressed or not."""

import http.client
import io
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import IO

import pyarrow as pa

from trainjob.data.read import archives
from trainjob.data.read.lfs_pointer import POINTER, POINTER_BYTES, is_pointer
from trainjob.errors import DataError
from trainjob.redaction import has_hidden
from trainjob.storage import open_filesystem, storage_errors

HTTP_SECONDS = 60


@contextmanager
def readable(uri: str, kind: str) -> Generator[None]:
    """Raises DataError for Arrow's errors about a file's content, and StorageError for those about reaching it."""
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
        """The number of compressed bytes that were read."""
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
