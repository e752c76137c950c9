"""From a URI to the parts that are read: finds the files and tells their format."""

import glob
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from fsspec.utils import glob_translate
from pyarrow import fs

from trainjob.api import Source
from trainjob.data.image_files import IDXFiles, ImageFiles
from trainjob.data.rows import Part, is_http
from trainjob.data.tables import CSVFile, JSONLinesFile, ParquetRows
from trainjob.errors import DataError
from trainjob.storage import open_filesystem, storage_errors

IMAGES_PER_PART = 64
_COMPRESSED = (".gz", ".bz2", ".zst")
_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"), "images"),
}
_IDX = re.compile(r"idx\d-ubyte")
_TABLES = {"csv": CSVFile, "jsonl": JSONLinesFile}


@dataclass(frozen=True)
class _File:
    uri: str
    name: str
    """Relative to the folder that was listed."""
    size: int


def parts(source: Source, endpoint: str | None) -> list[Part]:
    """What to read for `source`, in an order that depends on the files' names alone.

    Raises DataError where there is nothing or its format cannot be told, StorageError where it cannot be reached.
    """
    files, is_folder = _find(source.uri, endpoint)
    kind = source.format or _common_format(files, source.uri)
    if is_folder:
        files = [file for file in files if _format(file.name) == kind] or files
    if kind == "mnist":
        return [_idx(files, source.uri, endpoint)]
    if kind == "images":
        if not is_folder:
            raise DataError(f"{source.uri} must be a folder that holds a folder of images for each class")
        return _image_parts(files, source.uri.rstrip("/"), endpoint)
    if kind == "parquet":
        return [part for file in files for part in ParquetRows(file.uri, endpoint, file.size).split()]
    return [_TABLES[kind](file.uri, endpoint, file.size) for file in files]


def _find(uri: str, endpoint: str | None) -> tuple[list[_File], bool]:
    """The files at `uri` by name, and whether it is a folder."""
    if is_http(uri):
        return [_File(uri, uri.partition("?")[0].rpartition("/")[2], 0)], False
    filesystem, path = open_filesystem(uri, endpoint)
    scheme = uri[: uri.index("://") + 3] if "://" in uri and not uri.startswith("file:") else ""
    with storage_errors(uri):
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return [_File(uri, info.base_name, info.size)], False
        is_folder = info.type == fs.FileType.Directory
        if is_folder:
            found = _list(filesystem, path, recursive=True)
        elif glob.has_magic(path):
            found = _glob(filesystem, path)
        else:
            raise DataError(f"{uri}: there is nothing here; correct the URI")
    prefix = len(path) + 1 if is_folder else 0
    files = [_File(scheme + info.path, info.path[prefix:], info.size) for info in found]
    files = [file for file in files if not any(part[0] in "._" for part in PurePosixPath(file.name).parts[-2:])]
    if not files:
        raise DataError(f"{uri}: {'the folder holds no files' if is_folder else 'no file matches'}; correct the URI")
    return sorted(files, key=lambda file: file.name), is_folder


def _list(filesystem: fs.FileSystem, folder: str, recursive: bool) -> list[fs.FileInfo]:
    infos = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=recursive))
    return [info for info in infos if info.type == fs.FileType.File]


def _glob(filesystem: fs.FileSystem, pattern: str) -> list[fs.FileInfo]:
    """Files whose path matches; `*`, `?` and `[…]` stay within a folder, `**` spans folders."""
    steps = pattern.split("/")
    fixed = next(index for index, step in enumerate(steps) if glob.has_magic(step))
    matches = re.compile(glob_translate(pattern)).match
    infos = _list(filesystem, "/".join(steps[:fixed]) or "/", recursive=fixed < len(steps) - 1)
    return [info for info in infos if matches(info.path)]


def _format(name: str) -> str | None:
    path = PurePosixPath(name.lower())
    if _IDX.search(path.name):
        return "mnist"
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return _ENDINGS.get(path.suffix)


def _common_format(files: Iterable[_File], uri: str) -> str:
    kinds = sorted({kind for file in files if (kind := _format(file.name))})
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise DataError(f"{uri} holds files of several formats ({', '.join(kinds)}): name one with `format`")
    raise DataError(
        f"{uri}: the format cannot be told from the name; "
        "use .csv, .jsonl, .parquet, a folder of images or IDX files, or set `format`"
    )


def _image_parts(files: list[_File], uri: str, endpoint: str | None) -> list[Part]:
    loose = [file.name for file in files if "/" not in file.name]
    if loose:
        raise DataError(f"{uri}/{loose[0]} lies in no class folder: images belong in {uri}/<class>/")
    # By a hash of the name, so that each stretch of the stream has images of every class.
    files = sorted(files, key=lambda file: hashlib.blake2b(file.name.encode(), digest_size=8).digest())
    chunks = (files[start : start + IMAGES_PER_PART] for start in range(0, len(files), IMAGES_PER_PART))
    return [
        ImageFiles(uri, endpoint, sum(file.size for file in chunk), tuple(file.name for file in chunk))
        for chunk in chunks
    ]


def _idx(files: list[_File], uri: str, endpoint: str | None) -> IDXFiles:
    images = [file for file in files if "images" in file.name]
    if len(images) != 1:
        found = ", ".join(file.name for file in images) or "none"
        raise DataError(f"{uri}: name one IDX file of images, such as train-images-idx3-ubyte.gz; found {found}")
    folder, slash, name = images[0].uri.rpartition("/")
    labels = folder + slash + name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1")
    return IDXFiles(images[0].uri, labels, endpoint, images[0].size)
