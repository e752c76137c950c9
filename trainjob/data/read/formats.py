"""Determines the format of files from their names."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from trainjob.errors import DataError, listed
from trainjob.kinds.facts import TABLE_FORMATS

_COMPRESSED = (".gz", ".bz2", ".zst", ".zip")
_IMAGES = (".png", ".jpg", ".jpeg", ".jfif", ".bmp", ".gif", ".webp", ".avif", ".tif", ".tiff", ".pgm", ".ppm")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    **dict.fromkeys((".conll", ".bio", ".iob", ".iob2"), "conll"),
    **dict.fromkeys(_IMAGES, "images"),
}
_IDX = re.compile(r"idx\d-ubyte")


def format_of(name: str) -> str | None:
    path = PurePosixPath(name.lower())
    if _IDX.search(path.name):
        return "mnist"
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return _ENDINGS.get(path.suffix)


def common_format(names: Sequence[str], uris: Sequence[str]) -> str:
    """The format of the files `names` at `uris`; a folder of images with a `metadata.csv` has the format of that table.
    Raises DataError if there are several formats, or no known one."""
    kinds = sorted({kind for name in names if (kind := format_of(name))})
    if not kinds and any(map(_is_json, names)):
        return "jsonl"
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        tables = [name for name in names if format_of(name) in TABLE_FORMATS]
        beside_images = tables and len(kinds) == 2 and "images" in kinds
        if beside_images and all(map(is_metadata, tables)):
            return next(kind for kind in kinds if kind in TABLE_FORMATS)
        hint = f", or name the files of one alone, such as '{uris[0].rstrip('/')}/*{PurePosixPath(names[0]).suffix}'"
        if beside_images:
            hint = f", or with `uri` the table that names the images, such as {tables[0]}"
        raise DataError(
            f"{listed(uris)} has files in several formats ({', '.join(kinds)}): choose one with `format`{hint}"
        )
    if any(name.lower().endswith(".zip") for name in names):
        raise DataError(
            f"{listed(uris)}: a ZIP archive can be read only if it contains one table: set `format`, or rename it "
            "to .csv.zip or .jsonl.zip. Unpack any other, and give the folder"
        )
    raise DataError(
        f"{listed(uris)}: cannot tell the format from the name: rename it to end in .csv, .tsv, .jsonl, .json, "
        ".parquet or .conll, or give a folder of images or IDX files; a TrainJob may also set `format`"
    )


def of_format(names: Sequence[str], kind: str) -> list[str]:
    """The files of this format, by name. Files named .json contain rows only if there are no other files; otherwise
    they are metadata."""
    found = [name for name in names if format_of(name) == kind]
    return found or [name for name in names if kind == "jsonl" and _is_json(name)]


def _is_json(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix == ".json"


def is_metadata(name: str) -> bool:
    """Whether the file's name is that of the metadata table of an image folder on the Hugging Face hub."""
    return format_of(name) in TABLE_FORMATS and PurePosixPath(name).name.lower().startswith("metadata.")
