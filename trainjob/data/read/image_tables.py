"""Images in a table's rows: the files themselves, as the Hugging Face hub has them in Parquet, or their paths.

Both yield what image folders do (see image_files.py): the columns `image`, the encoded file, and `label`.
"""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from trainjob.data.read.image_columns import ImageColumns, image_columns
from trainjob.data.read.label_lists import LABELS, JoinColumns, canonical, with_lists
from trainjob.data.read.opening import open_seekable, readable
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import OnBadRow, ReadTable, RowLocation, Rows, SourcePart, WrappedPart, read_table, refuse
from trainjob.data.read.tables import IMAGE_ROWS, ParquetRows
from trainjob.errors import DataError, RowError, notify

IMAGE_BYTES = 2**17
"""The assumed size of an image before it is read."""
MAX_PATH_CHARACTERS = 4096
_BASE64 = ("data:", "/9j/", "iVBORw0KGgo", "R0lGOD")
"""Beginnings of data URLs, and of JPEG, PNG and GIF files in base64."""
_SCHEMES = ("file", "s3", "gs", "hf")


@dataclass(frozen=True)
class EmbeddedImages(WrappedPart):
    """Rows of a Parquet file that hold image files."""

    endpoint: str | None
    columns: ImageColumns

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        image, labels = self.columns.image, self.columns.of_labels
        wanted = None
        if columns is not None:
            wanted = labels if labels and "image" not in columns else [image, *labels]
        for rows in self.part.read(wanted, on_bad):
            yield _images_of(rows, self, columns, on_bad)


@dataclass(frozen=True)
class ListedImages:
    """Rows of a table that name image files."""

    uri: str
    """The URI of the table."""
    endpoint: str | None
    columns: ImageColumns
    table: pa.Table
    locations: tuple[RowLocation, ...]
    bad: tuple[RowError, ...] = ()
    """The errors of the table's rows that could not be read."""

    @property
    def size(self) -> int:
        return IMAGE_BYTES * len(self.table)

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        for error in self.bad:
            on_bad(error)
        if len(self.table):
            yield _images_of(Rows(self.table, self.locations.__getitem__), self, columns, on_bad)


def images_of_tables(
    parts: Sequence[SourcePart],
    endpoint: str | None,
    image: str | None,
    label: str | None,
    labelled: bool,
    labels: Sequence[str] = (),
    read: ReadTable = read_table,
    join: JoinColumns = with_lists,
) -> list[SourcePart]:
    """The images of tables. Their columns are named `image` and `label`, or are detected; `labels` are columns for
    several labels instead of `label`, which `join` makes into one. Where the rows name image files, the tables are read
    here, by `read`.

    Raises DataError for missing or ambiguous columns, and for cells that are not paths.
    """
    columns: dict[str, ImageColumns] = {}
    found: list[SourcePart] = []
    for part in parts:
        chosen = columns.get(part.uri) or image_columns(part, image, label, labelled, labels, join)
        columns[part.uri] = chosen
        found += _listed(part, endpoint, chosen, read) if chosen.is_path else [_embedded(part, endpoint, chosen)]
    for chosen in dict.fromkeys(columns.values()):
        if chosen.class_names:
            notify(
                f'the numbers of the column "{chosen.label}" have names in the Parquet files, such as '
                f'"{chosen.class_names[0]}" for 0: these are the classes'
            )
    return found


def named_files(parts: Sequence[SourcePart]) -> set[str]:
    """URIs, without `.` and `..`, of the image files that rows name."""
    named: set[str] = set()
    for part in parts:
        if isinstance(part, ListedImages):
            for path, location in zip(part.table[part.columns.image].to_pylist(), part.locations, strict=True):
                if path and path.strip():
                    with suppress(DataError):  # which reading the image raises
                        named.add(posixpath.normpath(_uri_of(path.strip(), part.uri, location)))
    return named


def _embedded(part: SourcePart, endpoint: str | None, columns: ImageColumns) -> EmbeddedImages:
    if isinstance(part, Partition):
        return EmbeddedImages(replace(part, part=_of_images(part.part, columns)), endpoint, columns)
    return EmbeddedImages(_of_images(part, columns), endpoint, columns)


def _of_images(part: SourcePart, columns: ImageColumns) -> SourcePart:
    assert isinstance(part, ParquetRows)
    return replace(part, image=columns.image, nested=tuple(columns.of_labels))


def _listed(part: SourcePart, endpoint: str | None, columns: ImageColumns, read: ReadTable) -> Iterator[ListedImages]:
    """Yields at least one part, even an empty one, which holds the errors of unreadable rows."""
    wanted = [columns.image, *columns.of_labels]
    empty = ListedImages(part.uri, endpoint, columns, pa.table({name: [] for name in wanted}), ())
    bad: list[RowError] = []
    found = 0
    for rows in read(part, wanted, bad.append):
        for start in range(0, len(rows.table), IMAGE_ROWS):
            share = rows.take(np.arange(start, min(start + IMAGE_ROWS, len(rows.table))))
            paths = share.table[columns.image].to_pylist()
            locations = tuple(_location_of(share.where(index), path) for index, path in enumerate(paths))
            yield replace(empty, table=share.table, locations=locations, bad=tuple(bad))
            bad.clear()
            found += 1
    if bad or not found:
        yield replace(empty, bad=tuple(bad))


def _location_of(row: RowLocation, path: str | None) -> RowLocation:
    return row.with_detail(path) if path and len(path) <= MAX_PATH_CHARACTERS else row


def _images_of(
    rows: Rows, part: EmbeddedImages | ListedImages, columns: Sequence[str] | None, on_bad: OnBadRow
) -> Rows:
    """`image` and `label` of the rows, and the columns that make up `label`; or, where `columns` is None, all columns
    beside the images. `on_bad` is called for rows without a file, or with a number that no class has."""
    chosen, size = part.columns, rows.size
    files: list[bytes] | None = None
    if columns is not None and chosen.labels:
        rows = chosen.join(rows, chosen.labels, on_bad)
    if columns is None or "image" in columns:
        rows, files = _with_files(rows, part, on_bad)
    if columns is None:
        left_out = ["image"] if chosen.is_path else ["image", chosen.image]
        table = rows.table.select([name for name in rows.table.column_names if name not in left_out])
    elif chosen.labels:
        written = {name: rows.table[name] for name in chosen.labels if name not in ("image", "label")}
        table = pa.table({"label": rows.table[LABELS], **written})
    elif chosen.label is None:
        table = pa.table({"label": pa.nulls(len(rows.table), pa.string())})
    else:
        table = pa.table({"label": rows.table[chosen.label]})
    if files is not None:
        table = table.append_column("image", pa.array(files, pa.binary()))
    found = Rows(table, rows.where, size)
    if columns is not None and chosen.class_names is not None:
        return _with_names(found, chosen.class_names, on_bad)
    return found


def _with_files(rows: Rows, part: EmbeddedImages | ListedImages, on_bad: OnBadRow) -> tuple[Rows, list[bytes]]:
    """The rows that have a file, and the files."""
    files: list[bytes] = []
    sound: list[int] = []
    for index, value in enumerate(rows.table[part.columns.image].to_pylist()):
        try:
            files.append(_file_of(value, part.uri, part.endpoint, rows.where(index)))
            sound.append(index)
        except RowError as error:
            on_bad(error)
    return rows.take(np.array(sound, np.int64)), files


def _with_names(rows: Rows, names: tuple[str, ...], on_bad: OnBadRow) -> Rows:
    """Replaces the numbers of classes by their names; a null stays null."""
    name_of: dict[str | None, str | None] = {str(number): name for number, name in enumerate(names)} | {None: None}
    numbers = [number and canonical(number) for number in rows.table["label"].to_pylist()]
    for index, number in enumerate(numbers):
        if number not in name_of:
            kind = f"the label is not one of the numbers 0 to {len(names) - 1} that have names; -1 means no label"
            on_bad(RowError(f"{rows.where(index)}: {kind}: it is {number}", rows.where(index), kind, str(number)))
    sound = rows.take(np.array([index for index, number in enumerate(numbers) if number in name_of], np.int64))
    named = pa.array([name_of[number] for number in numbers if number in name_of], pa.string())
    index = sound.table.column_names.index("label")
    return Rows(sound.table.set_column(index, "label", named), sound.where, rows.size)


def _file_of(value: Any, table: str, endpoint: str | None, where: RowLocation) -> bytes:
    """The image file of a row. Its column holds bytes, a path relative to the table's folder, or a struct of both, one
    of them null."""
    content = value["bytes"] if isinstance(value, dict) else value
    if isinstance(content, bytes):
        return content
    path = value.get("path") if isinstance(value, dict) else value
    if isinstance(value, dict):
        where = _location_of(where, path)
    if not path or not path.strip():
        raise RowError(f"{where}: there is no image in this row", where, "there is no image in this row")
    uri = _uri_of(path.strip(), table, where)
    kind = "there is no such file; paths are relative to the table's folder"
    message = f"{where}: there is no file {uri}: correct the path, which is relative to the table's folder"
    hint = ", and have / between folders, not \\" if "\\" in path else ""
    missing = RowError(message + hint, where, kind + hint)
    if "://" not in uri and not Path(uri).is_file():
        raise missing
    with readable(uri, "image"):
        try:
            with open_seekable(uri, endpoint) as file:
                return file.read()
        except FileNotFoundError:
            raise missing from None


def _uri_of(path: str, table: str, where: str) -> str:
    """The URI of an image from its path, which starts at the table's folder or, if absolute, at the root. It may be
    outside of that folder."""
    if len(path) > MAX_PATH_CHARACTERS or path.startswith(_BASE64):
        raise DataError(
            f'{where}: "{path[:20]}…" is not a path: base64 images are not supported; write them to '
            "files, or as bytes to Parquet"
        )
    scheme, separator, _ = path.partition("://")
    if separator and scheme not in _SCHEMES:
        raise DataError(
            f'{where}: "{path[:200]}" has the scheme {scheme}://: images can be read from files, s3://, '
            "gs:// and hf://; download them, and use their paths"
        )
    if scheme == "file":
        return urlsplit(path).path
    if separator or path.startswith("/"):
        return path
    folder = urlsplit(table).path if table.startswith("file:") else table
    scheme, separator, rest = folder.rpartition("://")
    if scheme in ("http", "https"):
        raise DataError(f"{where}: images next to a table on the web cannot be read: download the table and its images")
    return scheme + separator + posixpath.normpath(posixpath.join(posixpath.dirname(rest), path))
