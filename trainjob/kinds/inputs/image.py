"""Images to pixels."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from PIL import Image

from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.image_files import IDXFiles, ImageFiles, tensors_of
from trainjob.data.read.image_tables import images_of_tables
from trainjob.data.read.pictures import Picture, pictures
from trainjob.data.read.rows import ReadTable, Rows, SourcePart, check_columns, row_number
from trainjob.data.read.thumbnails import thumbnail
from trainjob.errors import RowError
from trainjob.kinds.input import FormField
from trainjob.kinds.inputs.decoding import ImageDecoder
from trainjob.kinds.inputs.python_rows import table_of_images
from trainjob.kinds.inputs.questions import Question, image_question

PLAIN_PIXELS = 100_000_000
"""Values of the images that a baseline learns from, times the classes."""
PLAIN_RESIZED = 4_000
"""Images that a baseline learns from if their sizes differ: they may be large photographs."""
PLAIN_SIDE = 32
"""Pixels on each side of an image that a baseline learns from."""


@dataclass(frozen=True)
class ImageInput:
    """Brings images to one size and to gray or RGB, and knows how their channels are normalized."""

    noun: ClassVar[str] = "image"
    packs: ClassVar[bool] = False
    values_of_token: ClassVar[int] = 1

    height: int
    width: int
    channels: int
    """1 where all training images are gray, otherwise 3; other images are converted."""
    mean: list[float]
    """Mean of each channel over the training part, 0 to 1."""
    std: list[float]
    resize: bool
    """Whether an image of another size is resized; otherwise it is an error."""
    as_shown: bool = field(default=False, kw_only=True)
    """Whether images are read as viewers show them, upright and on white. Models of earlier versions have learned from
    images as they are stored, and still read them so."""
    scaled: bool = field(default=False, kw_only=True)
    """Whether JPEG files are decoded at the smallest of their own scales that is large enough. Models of earlier
    versions have learned from images decoded at full size, and still read them so."""

    @property
    def columns(self) -> list[str]:
        return ["image"]

    @property
    def value_type(self) -> pa.DataType:
        return pa.uint8()

    @property
    def row_bytes(self) -> int:
        """Memory that a prepared row takes."""
        return self.height * self.width * self.channels + 2 * np.int64().itemsize

    def contents(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[bytes]:
        """The content by which the split identifies rows: encoded files or raw pixels."""
        return image_contents(table)

    def is_empty(self, content: bytes) -> bool:
        """No image is."""
        return False

    def check(self, rows: Rows) -> None:
        """Raises RowError for the first image that cannot be decoded or is of another size."""
        self._decoder.decode(rows.table, rows.where)

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """The pixels [H, W, C] of each image, flat, list<uint8>, of the column `image` (see image_files.py).

        Raises DataError for an image that is corrupt or of another size.
        """
        check_columns(self.columns, table.column_names, "the table")
        rows = [pixels.reshape(-1) for pixels in self._pixels(table, where)]
        values = np.concatenate([np.empty(0, np.uint8), *rows])
        return as_lists(values, np.array([len(row) for row in rows], np.int64))

    def _check(self, picture: Picture) -> None:
        """Raises RowError for an image whose shape the preprocessor cannot use."""
        if not self.resize:
            check_size(picture, (self.width, self.height))

    def _pixels(self, table: pa.Table, where: Callable[[int], str]) -> list[np.ndarray]:
        """The pixels of each image, uint8 [H, W] or [H, W, 3]."""
        return [image.pixels for image in self._decoder.take(table, where)]

    @property
    def _decoder(self) -> ImageDecoder:
        return ImageDecoder(self.width, self.height, self.channels, self._check, self.as_shown, self.scaled)

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """pixel_values uint8 [n, C, H, W]; the model normalizes them, on its device."""
        pixels = examples.values.reshape(-1, self.height, self.width, self.channels)
        return {"pixel_values": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))}

    @property
    def normalization(self) -> tuple[np.ndarray, np.ndarray]:
        """Divisor and offset of pixels that give each channel mean 0 and standard deviation 1 over the training part:
        both float32 [C, 1, 1]."""
        mean, std = (np.array(value, np.float32)[:, None, None] for value in (self.mean, self.std))
        return 255 * std, mean / std

    def alone(self) -> Self:
        return self

    def table(self, rows: Sequence[Any] | np.ndarray, where: Callable[[int], str]) -> pa.Table:
        return table_of_images(rows, where, self.as_shown)

    def parts(self, found: Sequence[SourcePart], column: str | None, read: ReadTable) -> Sequence[SourcePart]:
        """Tables become readers of their images."""
        if isinstance(found[0], ImageFiles | IDXFiles):
            return found
        return images_of_tables(found, None, column, None, labelled=False, read=read)

    def question(self, most_rows: int) -> type[Question]:
        return image_question(most_rows)

    def example(self) -> dict[str, Any]:
        file = io.BytesIO()
        Image.new("L", (self.width, self.height)).save(file, "PNG")
        return {"images": [base64.b64encode(file.getvalue()).decode()]}

    @property
    def form_fields(self) -> list[FormField]:
        return []

    def plain(self, rows: Rows) -> np.ndarray:
        """The pixels of each image, shrunk to at most PLAIN_SIDE a side: uint8 [n, features]."""
        pixels = self.transform(rows.table, rows.where).flatten().to_numpy()
        images = pixels.reshape(-1, self.height, self.width, self.channels)
        return images[:, :: self._plain_step, :: self._plain_step].reshape(len(images), -1)

    def most_plain_rows(self, width: int) -> int:
        step = self._plain_step
        features = ceil(self.height / step) * ceil(self.width / step) * self.channels
        rows = PLAIN_PIXELS // (features * width)
        return min(rows, PLAIN_RESIZED) if self.resize else rows

    @property
    def _plain_step(self) -> int:
        """Every `_plain_step`-th pixel of a row and of a column is kept."""
        return ceil(max(self.height, self.width) / PLAIN_SIDE)

    def cut_share(self, texts: Sequence[str]) -> None:
        return None

    def check_export(self, folder: Path, texts: Sequence[str]) -> None:
        """Transformers tokenizes no images."""

    def excerpts(self, rows: Rows, mistakes: np.ndarray) -> dict[str, pa.Array]:
        thumbnails: list[bytes | None] = [None] * len(rows.table)
        if len(mistakes):
            some = rows.take(mistakes)
            for index, picture in zip(mistakes.tolist(), pictures(some.table, some.where, self.as_shown), strict=True):
                thumbnails[index] = thumbnail(picture)
        return {"thumbnail": pa.array(thumbnails, pa.binary())}

    def save(self, folder: Path) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> Self:
        """The input that was saved with these fields of preprocessor.json."""
        return cls(**state)


def image_contents(table: pa.Table) -> list[bytes]:
    column = table["image"]
    if isinstance(column.type, pa.FixedShapeTensorType):
        return [pixels.tobytes() for pixels in tensors_of(column)]
    return column.to_pylist()


def check_size(picture: Picture, size: tuple[int, int]) -> None:
    """Raises RowError for an image of another width and height."""
    if picture.size != size:
        shown, advice = "{} x {} pixels".format(*picture.size), "set `size` of the model in spec.model to resize all"
        others = f"{size[0]} x {size[1]}"
        message = f"{picture.where} is {shown}, others are {others}: resize it, or {advice}"
        raise RowError(message, picture.where, f"not of the size of the others, {others} pixels ({advice})", shown)
