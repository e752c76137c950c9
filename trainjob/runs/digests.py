"""SHA-256 digests by which files are known again: a checkpoint's are in its manifest."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainjob.storage import Folder

_READERS = 16


def digests_of(folder: Path) -> dict[str, str]:
    """The digest of each file in a folder on this machine, by its path there."""

    def digest(file: Path) -> str:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): digest(file) for file in files}


def first_changed(folder: Folder, digests: Mapping[str, str]) -> str | None:
    """The first of these files that is missing or has another digest. Each is read once."""

    def is_same(name: str) -> bool:
        return folder.exists(name) and folder.sha256(name) == digests[name]

    with ThreadPoolExecutor(_READERS) as readers:
        same = list(readers.map(is_same, digests))
    return next((name for name, is_so in zip(digests, same, strict=True) if not is_so), None)
