"""SHA-256 digests by which files are known again: a checkpoint's are in its manifest, a model's in `digests.json`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from trainjob.errors import StorageError
from trainjob.storage import Folder, concurrently

DIGESTS = "digests.json"
"""The digest of each file of a model that is loaded, by its name."""
_Digests = TypeAdapter(dict[str, str])


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

    same = concurrently(is_same, digests)
    return next((name for name, is_so in zip(digests, same, strict=True) if not is_so), None)


def write_digests(folder: Folder, digests: Mapping[str, str]) -> None:
    folder.write(DIGESTS, json.dumps(digests, indent=1).encode())


def read_digests(folder: Folder) -> dict[str, str]:
    """Those of a model's folder; none where an earlier version of trainjob, or another program, has written it."""
    if not folder.exists(DIGESTS):
        return {}
    try:
        return _Digests.validate_json(folder.read(DIGESTS))
    except ValueError as error:
        raise StorageError(f"{folder.uri}/{DIGESTS} is damaged: {error}") from None
