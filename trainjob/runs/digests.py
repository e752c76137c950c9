"""SHA-256 digests that detect changed files: a checkpoint's are in its manifest, a model's in `digests.json`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from trainjob.errors import StorageError
from trainjob.storage import Folder, concurrently

DIGESTS = "digests.json"
"""Maps the name of each file of a model to its digest."""
_Digests = TypeAdapter(dict[str, str])


def digests_of(folder: Path) -> dict[str, str]:
    """Maps the relative path of each file in a local folder to its digest."""

    def digest(file: Path) -> str:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): digest(file) for file in files}


def first_changed(folder: Folder, digests: Mapping[str, str]) -> str | None:
    """The first file that is missing or has another digest, or None. Each file is read once."""

    def matches(name: str) -> bool:
        return folder.exists(name) and folder.sha256(name) == digests[name]

    unchanged = concurrently(matches, digests)
    return next((name for name, matched in zip(digests, unchanged, strict=True) if not matched), None)


def write_digests(folder: Folder, digests: Mapping[str, str]) -> None:
    folder.write(DIGESTS, json.dumps(digests, indent=1).encode())


def read_digests(folder: Folder) -> dict[str, str]:
    """The digests of a model's files; empty for a model of another program or of an earlier version of trainjob.

    Raises StorageError if the file is damaged."""
    if not folder.exists(DIGESTS):
        return {}
    try:
        return _Digests.validate_json(folder.read(DIGESTS))
    except ValueError as error:
        raise StorageError(f"{folder.uri}/{DIGESTS} is damaged: {error}") from None
