"""Files on local disk, `s3://` or `gs://`, which wait for a server that has answered before."""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from pyarrow import fs

from trainjob.errors import StorageError, StorageUnreachable
from trainjob.storage.filesystem import local_filesystem, open_filesystem, storage_errors

BLOCK_BYTES = 8 * 2**20
PAUSES_SECONDS = (1, 2, 4, 8, 15)
"""Before a server that has answered before is tried again."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate["Folder", _Arguments], _Result]
_answered: set[str | None] = set()
"""Endpoints that have answered this process."""


_waits: ContextVar[bool] = ContextVar("waits", default=False)
"""Whether a method waits already: what it calls then need not."""


def _patient(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Has a method wait for a server that has answered before: it may be back soon."""

    @wraps(method)
    def patient(folder: "Folder", *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        pauses = () if _waits.get() else PAUSES_SECONDS
        token, waited = _waits.set(True), False
        try:
            for pause in pauses:
                try:
                    result = method(folder, *arguments, **named)
                except StorageUnreachable as error:
                    if folder.endpoint not in _answered:
                        raise
                    folder.on_wait(f"waits for the storage: {error}")
                    waited = True
                    time.sleep(pause)
                else:
                    _answered.add(folder.endpoint)
                    if waited:
                        folder.on_wait("")
                    return result
            return method(folder, *arguments, **named)
        finally:
            _waits.reset(token)

    return patient


def _guarded(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Has a method that changes something ask first whether it may."""

    @wraps(method)
    def guarded(folder: "Folder", *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        folder.before_change(folder)
        return method(folder, *arguments, **named)

    return guarded


def _ignore(_: object) -> None:
    pass


@dataclass(frozen=True)
class Folder:
    """A folder on local disk, `s3://` or `gs://`, made when first written to.

    Every method raises StorageError: StorageUnreachable, where a server does not answer or has been away for too long.
    """

    uri: str
    endpoint: str | None = None
    """S3 server; Amazon's, or AWS_ENDPOINT_URL, by default."""
    on_wait: Callable[[str], None] = _ignore
    """Called with a text while a server is waited for, and with an empty one when it answers again."""
    before_change: Callable[["Folder"], None] = _ignore
    """Called with this folder before anything is written or removed, which what it raises prevents."""

    def __truediv__(self, name: str) -> "Folder":
        return replace(self, uri=f"{self.uri.rstrip('/')}/{name}")

    @_patient
    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder `name`."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            return filesystem.get_file_info(path).type != fs.FileType.NotFound

    @_patient
    def list(self, name: str = "") -> list[str]:
        """Sorted names of what the folder `name` holds; none where it is missing."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            return sorted(
                info.base_name for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
            )

    @_patient
    def sizes(self) -> dict[str, tuple[int, str]]:
        """Of the files that lie in this folder, by their names: bytes, and when each was written; none where it is
        missing."""
        filesystem, path = self._open("")
        with storage_errors(self.uri):
            found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
            return {info.base_name: (info.size, str(info.mtime)) for info in found if info.type == fs.FileType.File}

    @_patient
    def read(self, name: str) -> bytes:
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)), filesystem.open_input_file(path) as file:
            return file.read()

    @_patient
    def read_range(self, name: str, start: int, size: int) -> bytearray:
        """`size` bytes of a file from `start` on. Raises StorageError where it is shorter."""
        filesystem, path = self._open(name)
        data = bytearray(size)
        with storage_errors(self._uri(name)), filesystem.open_input_file(path) as file:
            file.seek(start)
            read = file.readinto(data)
        if read < size:
            raise StorageError(f"{self._uri(name)} is cut off: it has fewer than {start + size} bytes")
        return data

    @_patient
    def sha256(self, name: str) -> str:
        """Of a file, in hexadecimal digits."""
        digest = hashlib.sha256()
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)), filesystem.open_input_file(path) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
        return digest.hexdigest()

    @_patient
    @_guarded
    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file at once: a reader finds the old or the new one whole, even after a crash."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            if isinstance(filesystem, fs.LocalFileSystem):
                _replace(Path(path), data)
            else:
                with filesystem.open_output_stream(path, compression=None) as file:
                    file.write(data)

    @_patient
    @_guarded
    def upload(self, local: Path, name: str) -> None:
        """Copy a local file or tree to `name`; files of a tree replace those of the same name."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            filesystem.create_dir(path if local.is_dir() else str(Path(path).parent))
            fs.copy_files(
                str(local.absolute()), path, source_filesystem=local_filesystem(), destination_filesystem=filesystem
            )

    @_patient
    def download(self, name: str, local: Path) -> None:
        """Copy the file or tree `name` to `local`."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            is_folder = filesystem.get_file_info(path).type == fs.FileType.Directory
            (local if is_folder else local.parent).mkdir(parents=True, exist_ok=True)
            fs.copy_files(
                path, str(local.absolute()), source_filesystem=filesystem, destination_filesystem=local_filesystem()
            )

    @_patient
    @_guarded
    def delete(self, name: str) -> None:
        """Remove the file or tree `name`, if it is there."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            match filesystem.get_file_info(path).type:
                case fs.FileType.NotFound:
                    return
                case fs.FileType.Directory:
                    with suppress(FileNotFoundError):  # it is listed without a file, as after a server's crash
                        filesystem.delete_dir(path)
                case _:
                    filesystem.delete_file(path)

    def _uri(self, name: str) -> str:
        return (self / name).uri if name else self.uri

    def _open(self, name: str) -> tuple[fs.FileSystem, str]:
        return open_filesystem(self._uri(name), self.endpoint)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
