"""Tables of the rows that a Python user gives to `Predictor`."""

import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from trainjob.data.arrays import as_texts
from trainjob.data.read.image_files import image_tensor
from trainjob.data.read.opening import open_seekable, readable
from trainjob.data.read.pictures import Picture
from trainjob.errors import UserError


def table_of_texts(
    rows: Sequence[Any] | np.ndarray, columns: list[str], where: Callable[[int], str], pair: Sequence[str] = ()
) -> pa.Table:
    """A table of texts or of mappings from column to value; with columns for the second text of a `pair`, of pairs of
    texts or of mappings. A text goes into the first of its columns: the model joins them anyway. Raises UserError for
    rows of another type."""
    records = []
    for index, row in enumerate(rows):
        if pair and isinstance(row, Sequence) and [type(text) for text in row] == [str, str]:
            row = dict.fromkeys(columns, "") | {columns[0]: row[0], pair[0]: row[1]}
        if isinstance(row, str) and not pair:
            row = dict.fromkeys(columns, "") | {columns[0]: row}
        if not isinstance(row, Mapping):
            what = "pairs of texts, each a list of two, or mappings" if pair else "texts or mappings"
            given = f"{where(index)}: the model takes {what}, not {type(row).__name__}"
            option = shlex.quote(json.dumps(dict.fromkeys(columns, "…"), ensure_ascii=False))
            raise UserError(f"{given}; for `trainjob predict`, write --row {option}" if pair else given)
        missing = [name for name in columns if name not in row]
        if missing:
            raise UserError(f"{where(index)} has no {' and no '.join(missing)}; the model takes {', '.join(columns)}")
        records.append([row[name] for name in columns])
    cells = {name: [record[i] for record in records] for i, name in enumerate(columns)}
    return as_arrow_table(lambda: pa.table({name: _as_column(given) for name, given in cells.items()}))


def _as_column(cells: list[Any]) -> pa.Array:
    return as_texts(cells) if all(isinstance(cell, str) for cell in cells) else pa.array(cells)


def table_of_images(rows: Sequence[Any] | np.ndarray, where: Callable[[int], str], as_shown: bool) -> pa.Table:
    """A table of images, as `trainjob.predictor.RowsLike` describes them, in the column `image`. Raises UserError for
    rows of another type."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.uint8 and rows.ndim in (3, 4):
        return pa.table({"image": image_tensor(rows)})
    files = [_encoded(row, where(index), as_shown) for index, row in enumerate(rows)]
    return pa.table({"image": pa.array(files, pa.binary())})


def _encoded(image: Any, where: str, as_shown: bool) -> bytes:
    """An image file's content."""
    if isinstance(image, (str, PathLike)):
        with readable(str(image), "image"), open_seekable(str(image), None) as file:
            return file.read()
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim not in (2, 3):
            raise UserError(
                f"{where}: an image is a uint8 array [H, W] or [H, W, channels], not {image.dtype} {list(image.shape)}"
            )
        image = Image.fromarray(image.squeeze(2) if image.shape[2:] == (1,) else image)
    if not isinstance(image, Image.Image):
        raise UserError(f"{where}: the model takes paths, PIL images or uint8 arrays, not {type(image).__name__}")
    content = io.BytesIO()
    Picture(image, where, as_shown).in_8_bits().save(content, "TIFF")  # without EXIF and transparency
    return content.getvalue()


def as_arrow_table(make: Callable[[], pa.Table]) -> pa.Table:
    """The result of `make`. Raises UserError if Arrow rejects the rows."""
    try:
        return make()
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise UserError(f"the rows do not form a table: {error}") from None
