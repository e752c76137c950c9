"""Lists the files of a URI: a file, a folder, a glob, or an address on the web."""

import glob
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from fsspec.utils import glob_translate
from pyarrow import fs

from trainjob.data.read.opening import is_http
from trainjob.errors import DataError, listed
from trainjob.storage import open_filesystem, storage_errors


@dataclass(frozen=True)
class File:
    """A file of a source."""

    uri: str
    name: str
    """Relative to the folder that was listed."""
    size: int
    changed: datetime | None
    """The time of the last write; None if unknown."""


@dataclass(frozen=True)
class Listing:
    """The files of one URI of a source."""

    uri: str
    files: list[File]
    """The files, sorted by name."""
    is_folder: bool
    images: list[File] = field(default_factory=list)
    """The images next to a table `metadata.csv`, the layout that the Hugging Face hub uses."""

    @property
    def data(self) -> list[File]:
        """The files whose names tell the format: without markers, unless there are only markers."""
        return [file for file in self.files if not (self.is_folder and is_marker(file.name))] or self.files


def find(uri: str, endpoint: str | None) -> Listing:
    """The files at `uri`, except hidden ones. Raises DataError if there are none."""
    if is_http(uri):
        return Listing(uri, [File(uri, uri.partition("?")[0].rpartition("/")[2], 0, None)], is_folder=False)
    filesystem, path = open_filesystem(uri, endpoint)
    scheme = uri[: uri.index("://") + 3] if "://" in uri and not uri.startswith("file:") else ""
    with storage_errors(uri):
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return Listing(uri, [File(uri, info.base_name, info.size, info.mtime)], is_folder=False)
        is_folder = info.type == fs.FileType.Directory
        if is_folder:
            folder, found = path, _list(filesystem, path, recursive=True)
        elif glob.has_magic(path):
            folder, found = _glob(filesystem, path)
        else:
            hint = ", or set HF_TOKEN if the data set is private" if scheme == "hf://" else ""
            raise DataError(f"{uri}: there is nothing here; correct the URI{hint}")
    start = len(folder.rstrip("/")) + 1
    pattern = "" if is_folder else path[start:]
    found = [info for info in found if not _is_hidden(info.path[start:], pattern)]
    if broken := [info.path[start:] for info in found if info.type != fs.FileType.File]:
        raise DataError(f"{uri}: broken links, or no files at all: {listed(broken)}; fix or remove them")
    files = [File(scheme + info.path, info.path[start:], info.size, info.mtime) for info in found]
    if not files:
        raise DataError(f"{uri}: {'the folder has no files' if is_folder else 'no file matches'}; correct the URI")
    return Listing(uri, sorted(files, key=lambda file: file.name), is_folder)


def _is_hidden(name: str, pattern: str) -> bool:
    """Whether a name begins with a dot or, in a glob, with `_`; never if the pattern itself names such files."""
    beginnings = (".", "_") if pattern else (".",)
    if any(step.startswith(beginnings) for step in pattern.split("/")):
        return False
    return any(part.startswith(beginnings) for part in PurePosixPath(name).parts)


def _list(filesystem: fs.FileSystem, folder: str, recursive: bool) -> list[fs.FileInfo]:
    """Lists the files of the folder, without its subfolders."""
    infos = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=recursive))
    found = [info for info in infos if info.type != fs.FileType.Directory]
    if isinstance(filesystem, fs.LocalFileSystem):  # whose selector skips broken links
        names = Path(folder).glob("**/*" if recursive else "*")
        found += [fs.FileInfo(str(path)) for path in names if path.is_symlink() and not path.exists()]
    return found


def _glob(filesystem: fs.FileSystem, pattern: str) -> tuple[str, list[fs.FileInfo]]:
    """The folder that the pattern starts from, and the files whose path matches; `*`, `?` and `[…]` stay within a
    folder, `**` spans folders."""
    steps = pattern.split("/")
    fixed = next(index for index, step in enumerate(steps) if glob.has_magic(step))
    folder = "/".join(steps[:fixed]) or "/"
    matches = re.compile(glob_translate(pattern)).match
    infos = _list(filesystem, folder, recursive=fixed < len(steps) - 1)
    return folder, [info for info in infos if matches(info.path)]


def is_marker(name: str) -> bool:
    """Whether the name of a file, such as _SUCCESS or _delta_log/0.json, shows that it holds no rows."""
    return any(part.startswith("_") for part in PurePosixPath(name).parts)
