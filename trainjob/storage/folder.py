"""`Folder`: files on local disk, `s3://` or `gs://`. Operations wait for a server that has answered before."""

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
"""Pauses between retries of a server that has answered before."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate["Folder", _Arguments], _Result]
_answered: set[str | None] = set()
"""Endpoints that have answered requests of this process."""


_waits: ContextVar[bool] = ContextVar("waits", default=False)
"""Whether an outer method is already retrying; nested calls then do not."""


def _patient(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Retries a method while a server that has answered before does not answer."""

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
                    folder.on_wait(f"waiting for storage: {error}")
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
    """Calls `before_change` before a method that writes or deletes."""

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

    Every method raises StorageError; StorageUnreachable if a server does not answer, or stays away for too long.
    """

    uri: str
    endpoint: str | None = None
    """S3 server; Amazon's, or AWS_ENDPOINT_URL, by default."""
    on_wait: Callable[[str], None] = _ignore
    """Called with the reason while a method waits for a server, and with an empty text when the server answers
    again."""
    before_change: Callable[["Folder"], None] = _ignore
    """Is called with this folder before every change; if it raises, nothing changes."""

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
        """Sorted names of the entries of the folder `name`; empty if there is no such folder."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            return sorted(
                info.base_name for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
            )

    @_patient
    def sizes(self) -> dict[str, tuple[int, str]]:
        """Bytes and modification time of each file in this folder, by name; empty if there is no such folder."""
        filesystem, path = self._open("")
        with storage_errors(self.uri):
            found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
            return {info.base_name: (info.size, str(info.mtime)) for info in found if info.type == fs.FileType.File}

    @_patient
    def files(self) -> dict[str, tuple[int, int]]:
        """Bytes and modification time, in nanoseconds, of each file at any depth, by path in this folder; empty if
        there is no such folder."""
        filesystem, path = self._open("")
        with storage_errors(self.uri):
            found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
            files = [info for info in found if info.type == fs.FileType.File]
            return {info.path[len(path) :].lstrip("/"): (info.size, info.mtime_ns) for info in files}

    @_patient
    def read(self, name: str) -> bytes:
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)), filesystem.open_input_file(path) as file:
            return file.read()

    @_patient
    def read_range(self, name: str, start: int, size: int) -> bytearray:
        """`size` bytes of a file from `start` on. Raises StorageError if the file is shorter."""
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
        """The hex digest of a file."""
        digest = hashlib.sha256()
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)), filesystem.open_input_file(path) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
        return digest.hexdigest()

    @_patient
    @_guarded
    def write(self, name: str, data: bytes) -> None:
        """Writes or replaces a file atomically: a reader sees the whole old or the whole new file, even after a
        crash."""
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
        """Copies a local file or tree to `name`; files of a tree replace files of the same name."""
        filesystem, path = self._open(name)
        with storage_errors(self._uri(name)):
            filesystem.create_dir(path if local.is_dir() else str(Path(path).parent))
            fs.copy_files(
                str(local.absolute()), path, source_filesystem=local_filesystem(), destination_filesystem=filesystem
            )

    @_patient
    def flush(self, name: str) -> None:
        """Waits until all files of the local tree `name` are on the disk, where a crash of the machine cannot damage
        them. Object stores do so by themselves."""
        filesystem, path = self._open(name)
        if isinstance(filesystem, fs.LocalFileSystem):
            with storage_errors(self._uri(name)):
                for file in filter(Path.is_file, Path(path).rglob("*")):
                    with file.open("rb") as opened:
                        os.fsync(opened.fileno())

    @_patient
    def download(self, name: str, local: Path) -> None:
        """Copies the file or tree `name` to `local`."""
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
        """Removes the file or tree `name`, if it exists."""
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
