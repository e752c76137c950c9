"""Reads the only file of a ZIP archive."""

import zipfile
import zlib
from pathlib import PurePosixPath

import pyarrow as pa

from trainjob.errors import DataError, listed

UNSOUND = (zipfile.BadZipFile, zlib.error)
"""Errors that a damaged archive raises."""


def is_zip(uri: str) -> bool:
    return uri.partition("?")[0].lower().endswith(".zip")


def only_member(archive: pa.NativeFile, uri: str) -> pa.NativeFile:
    """Opens the only file of the archive. Raises DataError if there are several files or none, or a password."""
    members = zipfile.ZipFile(archive)
    names = [member.filename for member in members.infolist() if not member.is_dir() and _is_data(member.filename)]
    if len(names) != 1:
        found = f"{len(names):,} files ({listed(names)})" if names else "no file"
        raise DataError(
            f"{uri} is a ZIP archive with {found}; only archives of one table can be read: unpack it, and give the "
            "folder"
        )
    try:
        return pa.PythonFile(members.open(names[0]), "r")
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(f"{uri}: {names[0]} cannot be unpacked: {error}; unpack it yourself") from None


def _is_data(name: str) -> bool:
    """Whether a file is part of the data; macOS adds others."""
    return not any(part == "__MACOSX" or part.startswith(".") for part in PurePosixPath(name).parts)
