"""Copies a run, or a part of it, into a local folder, and continues a copy that was interrupted."""

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Event, Lock
from typing import BinaryIO, NamedTuple

from trainjob import interrupts
from trainjob.errors import StorageError, UserError
from trainjob.runs.checkpoints import MANIFEST, read_manifest
from trainjob.runs.digests import DIGESTS, read_digests
from trainjob.runs.files import ATTEMPTS, CLAIMS, EVALUATION, LAUNCHES, LOCK, REPORT, SUMMARY, TRAINJOB, RunFiles
from trainjob.runs.lock import file_lock
from trainjob.runs.model import model_folder
from trainjob.runs.refusals import not_a_run
from trainjob.storage import Folder, concurrently, storage_errors
from trainjob.storage.concurrently import REQUESTS
from trainjob.storage.folder import BLOCK_BYTES

OnBytes = Callable[[int, int], None]
"""Called with the bytes that are in place and their total, from several threads."""

PULLED_FROM = ".pulled-from"
"""A file in the local folder that holds the URI of the run."""
PARTIAL = ".partial"
"""A folder in the local folder for files that are not complete yet."""
_COMPLETES = ("config.json", MANIFEST, SUMMARY)
"""With these files a model, a checkpoint and a run count as complete, so they are copied last."""
_WITH_MODEL = (TRAINJOB, ATTEMPTS, SUMMARY, EVALUATION)
"""Files of a run that are copied with its model, as `evaluate` and `serve` read them."""


class Pulled(NamedTuple):
    """The result of a pull."""

    files: int
    copied: int
    """Files that were copied; the other files were in place already."""
    size: int
    """Bytes of all files."""


class _File(NamedTuple):
    name: str
    """Its path in the run's folder."""
    size: int
    modified: int
    """Nanoseconds since 1970."""
    sha256: str | None
    """None if the run has not recorded it."""

    @property
    def partial_name(self) -> str:
        """A name for the incomplete file, which another version of the file does not get."""
        version = self.sha256 or f"{self.size} {self.modified}"
        return hashlib.sha256(f"{self.name} {version}".encode()).hexdigest()


def pull(run: Folder, target: Path, part: RunFiles, on_progress: OnBytes) -> Pulled:
    """Copies a part of a run into the local folder `target`, which must be empty or hold an earlier pull of the run.

    Files that are in place and unchanged are not copied again, and an incomplete file is continued. A file gets its
    name once it is complete and matches the SHA-256 that the run has recorded, if any.

    Raises UserError if the run lacks the part, or if `target` holds something else; TransientError if another process
    uses `target`; StorageError if a file cannot be read or does not match its digest.
    """
    files = _files_of(run, part)
    with _prepared(target, run.uri):
        with storage_errors(str(target)):
            in_place = concurrently(partial(_is_in_place, target), files)
            missing = [file for file, is_there in zip(files, in_place, strict=True) if not is_there]
            _check_room(target, missing)
        copier = _Copier(run, target, files, missing, on_progress)
        copier.copy(file for file in missing if not _is_last(file))
        copier.copy(file for file in missing if _is_last(file))
        shutil.rmtree(target / PARTIAL, ignore_errors=True)
    return Pulled(len(files), len(missing), sum(file.size for file in files))


def _files_of(run: Folder, part: RunFiles) -> list[_File]:
    """The files of a part of the run, with their recorded digests."""
    found = {name: info for name, info in run.files().items() if not _is_internal(name)}
    if unsafe := next((name for name in found if {"", ".", ".."} & set(name.split("/"))), None):
        raise StorageError(f"{run.uri}/{unsafe}: a path that leads out of the run's folder; remove this file")
    prefix = ""
    match part:
        case "model":
            prefix = f"{model_folder(run).uri[len(run.uri) :].strip('/')}/".lstrip("/")
            names = [name for name in found if name.startswith(prefix) or name in _WITH_MODEL]
        case "report":
            names = [name for name in found if name == REPORT]
            if not names and TRAINJOB in found:
                raise UserError(f"{run.uri} has no report yet; `trainjob report` writes one, also of an unfinished run")
        case "all":
            names = list(found)
            if TRAINJOB not in found:
                model_folder(run)  # raises unless it is a model's folder
    if not names:
        raise not_a_run(run, TRAINJOB)
    digests = _recorded_digests(run, names)
    absent = [name for name in digests if name not in found and name.startswith(prefix)]
    if absent and part == "model":
        raise StorageError(f"{run.uri}/{absent[0]} is missing, so the model is incomplete")
    return [_File(name, *found[name], digests.get(name)) for name in sorted(names)]


def _is_internal(name: str) -> bool:
    return name.partition("/")[0] in (CLAIMS, LAUNCHES, LOCK, PULLED_FROM, PARTIAL)


def _is_last(file: _File) -> bool:
    return PurePosixPath(file.name).name in _COMPLETES


def _recorded_digests(run: Folder, names: Iterable[str]) -> dict[str, str]:
    """The digests in the manifests of models and checkpoints, by path in the run's folder."""

    def read(manifest: str) -> dict[str, str]:
        prefix, _, kind = manifest.rpartition("/")
        folder = run / prefix if prefix else run
        if kind == DIGESTS:
            digests = read_digests(folder)
        else:
            content = read_manifest(folder)
            digests = content.files if content is not None else {}
        return {f"{prefix}/{name}".lstrip("/"): digest for name, digest in digests.items()}

    manifests = [name for name in names if PurePosixPath(name).name in (DIGESTS, MANIFEST)]
    return {name: digest for part in concurrently(read, manifests) for name, digest in part.items()}


@contextmanager
def _prepared(target: Path, uri: str) -> Generator[None]:
    """Locks the local folder and marks it with the run's URI."""
    _refuse_other_content(target, uri)
    with file_lock(target):
        _refuse_other_content(target, uri)
        Folder(str(target)).write(PULLED_FROM, f"{uri}\n".encode())
        yield


def _refuse_other_content(target: Path, uri: str) -> None:
    with storage_errors(str(target)):
        if not target.exists():
            return
        if not target.is_dir():
            raise UserError(f"{target} is a file: give a folder")
        marker = target / PULLED_FROM
        pulled_from = marker.read_text(errors="replace").strip() if marker.is_file() else None
        if pulled_from is None and any(entry.name != LOCK for entry in target.iterdir()):
            raise UserError(f"{target} is not empty, and no run was pulled into it: give a new folder")
        if pulled_from not in (None, uri):
            raise UserError(f"{target} holds another run, {pulled_from}: give a new folder, or remove this one")


def _check_room(target: Path, missing: list[_File]) -> None:
    partial = target / PARTIAL
    partial.mkdir(exist_ok=True)
    needed = sum(file.size for file in missing) - sum(entry.stat().st_size for entry in partial.iterdir())
    free = shutil.disk_usage(target).free
    if needed > free:
        raise StorageError(f"{target} needs {needed / 1e9:.1f} GB more, and its disk has {free / 1e9:.1f} GB free")


def _is_in_place(target: Path, file: _File) -> bool:
    """Whether the local folder has the file unchanged."""
    local = target / file.name
    if not local.is_file() or local.stat().st_size != file.size:
        return False
    if file.sha256 is None:
        return local.stat().st_mtime_ns == file.modified
    interrupts.check()
    with local.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


class _Copier:
    """Copies files in threads."""

    def __init__(
        self, run: Folder, target: Path, files: list[_File], missing: list[_File], on_progress: OnBytes
    ) -> None:
        self._run, self._target, self._on_progress = run, target, on_progress
        self._total = sum(file.size for file in files)
        self._done = self._total - sum(file.size for file in missing)
        self._lock, self._stop = Lock(), Event()
        self._advance(0)

    def copy(self, files: Iterable[_File]) -> None:
        """Copies the files. After an error or a signal, no thread begins another block."""
        with ThreadPoolExecutor(REQUESTS) as threads:
            futures = [threads.submit(self._copy, file) for file in files]
            try:
                for future in futures:
                    interrupts.result_of(future)
            except BaseException:
                self._stop.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _copy(self, file: _File) -> None:
        partial, local = self._target / PARTIAL / file.partial_name, self._target / file.name
        with storage_errors(str(local)):
            was_begun = partial.exists()
            if not self._fill(partial, file) and not (was_begun and self._fill(partial, file)):
                raise StorageError(
                    f"{self._run.uri}/{file.name} does not match the SHA-256 that the run has recorded: it is damaged "
                    "in the storage"
                )
            os.utime(partial, ns=(file.modified, file.modified))
            local.parent.mkdir(parents=True, exist_ok=True)
            os.replace(partial, local)

    def _fill(self, partial: Path, file: _File) -> bool:
        """Completes an incomplete file. Removes it and returns False if it does not match its digest then."""
        digest = hashlib.sha256()
        with partial.open("a+b") as opened:
            opened.truncate(min(partial.stat().st_size, file.size))
            done = _hash(opened, digest.update)
            self._advance(done)
            while done < file.size:
                if self._stop.is_set():
                    raise StorageError(f"{file.name}: the copy was stopped")
                block = self._run.read_range(file.name, done, min(BLOCK_BYTES, file.size - done))
                opened.write(block)
                digest.update(block)
                done += len(block)
                self._advance(len(block))
            opened.flush()
            os.fsync(opened.fileno())
        if file.sha256 in (None, digest.hexdigest()):
            return True
        partial.unlink()
        self._advance(-file.size)
        return False

    def _advance(self, size: int) -> None:
        with self._lock:
            self._done += size
            self._on_progress(self._done, self._total)


def _hash(file: BinaryIO, update: Callable[[bytes], object]) -> int:
    """Passes the content of a file to `update`, and returns its number of bytes."""
    file.seek(0)
    while block := file.read(BLOCK_BYTES):
        update(block)
    return file.tell()
