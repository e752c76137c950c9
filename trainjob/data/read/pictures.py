"""Opens images as viewers show them: upright by their EXIF data, transparent parts on white, 16 bits scaled to 8."""

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from PIL import ExifTags, Image, UnidentifiedImageError

from trainjob.data.read.image_files import MAX_PIXELS, tensors_of, too_large
from trainjob.data.read.lfs_pointer import POINTER, POINTER_ADVICE, is_pointer
from trainjob.data.read.rows import Rows
from trainjob.errors import DataError, RowError

FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""The formats that Pillow may detect, whatever the file's name: for others, such as EPS, it starts other programs."""
BACKGROUND = "white"
CHANNELS, ALPHA, TURNED, FRAMES = 3, 4, 8, 16
"""The bits of an image's marks."""
_DEEP_GRAY_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I")
_GRAY_MODES = ("1", "L", "LA", *_DEEP_GRAY_MODES)
_COLOR_MODES = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The transposition that makes an image upright, by its EXIF orientation."""
_SWAPS_SIDES = 5
"""The smallest of the EXIF orientations that swap width and height."""
_MARKS_OF_EXIF = (b"eXIf", b"exif", b"tiff:Orientation")
"""A PNG file without any of these has no orientation. Pillow decodes the whole file to find out."""

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Picture:
    """An image of which only the header has been read."""

    image: Image.Image
    where: str
    as_shown: bool = True
    """False to read the image as it is stored: not turned, and without transparency."""
    may_be_turned: bool = True
    """Whether to look for an orientation at all."""

    @cached_property
    def turn(self) -> Image.Transpose | None:
        """The transposition that makes the image upright; None if it is already. TIFF files are turned by Pillow
        itself."""
        if not (self.as_shown and self.may_be_turned) or self.image.format == "TIFF":
            return None
        try:
            orientation = self.image.getexif().get(ExifTags.Base.Orientation)
        except Exception:  # whatever damaged EXIF data makes Pillow raise; viewers ignore such data
            return None
        return _TURNS.get(orientation) if isinstance(orientation, int) else None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self._turned(self.image.size)

    @property
    def channels(self) -> int:
        """1 for gray, 3 for color."""
        return 1 if self.image.mode in _GRAY_MODES else 3

    @property
    def has_alpha(self) -> bool:
        """Whether parts of the image may be transparent."""
        return self.image.has_transparency_data

    @property
    def has_frames(self) -> bool:
        """Whether the file holds further images: an animation or pages. Those of MPO, from phones, are previews."""
        try:
            return self.image.format != "MPO" and getattr(self.image, "is_animated", False)
        except Exception:  # whatever a damaged second image makes Pillow raise
            return False

    @property
    def marks(self) -> int:
        """The channels, with the bits ALPHA, TURNED and FRAMES for other properties that users are told of."""
        return self.channels | ALPHA * self.has_alpha | TURNED * (self.turn is not None) | FRAMES * self.has_frames

    def decoded(self, channels: int) -> Image.Image:
        """The image in gray (1) or RGB (3). Raises DataError for one that is damaged."""
        with _refuse_damaged(self.where):
            return self.in_8_bits().convert("L" if channels == 1 else "RGB")

    def resized(self, channels: int, size: tuple[int, int], scaled: bool) -> Image.Image:
        """The image in gray (1) or RGB (3), resized to this width and height. If `scaled`, a JPEG file is decoded at
        the smallest of its own scales (1, 1/2, 1/4, 1/8) that has them. Raises DataError for one that is damaged."""
        with _refuse_damaged(self.where):
            draft = self.image.draft(self.image.mode, self._turned(size)) if scaled else None
            if draft is None:
                image = self.decoded(channels)
                return image if image.size == size else image.resize(size, Image.Resampling.BILINEAR)
            image = self.image.convert("L" if channels == 1 else "RGB")
            image = image.resize(self._turned(size), Image.Resampling.BILINEAR, box=draft[1])
            return image if self.turn is None else image.transpose(self.turn)

    def in_8_bits(self) -> Image.Image:
        """The image upright, without transparency, with at most 8 bits a channel. Reads no pixels if nothing has to
        change. Raises DataError for a damaged image."""
        with _refuse_damaged(self.where):
            image = self._scaled() if self.image.mode in _DEEP_GRAY_MODES else self.image
            if self.as_shown and self.has_alpha:
                image = _on_background(image)
            return image if self.turn is None else image.transpose(self.turn)

    def _turned(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height before or after the image is made upright."""
        swaps = self.turn is not None and self.turn in [_TURNS[number] for number in range(_SWAPS_SIDES, 9)]
        return size[::-1] if swaps else size

    def _scaled(self) -> Image.Image:
        """Converts a gray image of 16 bits to 8 bits by keeping the high byte, as Pillow does with color images."""
        values = np.asarray(self.image)
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= 2**16:
            kind = "has gray values beyond 16 bits"
            found = f"from {low:,} to {high:,}"
            limit = "only images with up to 16 bits per channel, 0 to 65,535, are supported: scale it"
            raise RowError(f"{self.where} has gray values {found}; {limit}", self.where, kind, found)
        scaled = Image.fromarray((values >> 8).astype(np.uint8))
        transparent = self.image.info.get("transparency")
        if not isinstance(transparent, int):
            return scaled
        scaled.putalpha(Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8)))
        return scaled


def pictures(table: pa.Table, where: Callable[[int], str], as_shown: bool = True) -> Iterator[Picture]:
    """The images of the column `image` (see image_files.py). Raises DataError for what cannot be read."""
    for index, image in enumerate(images_of(table)):
        yield opened(image, where(index), as_shown)


def images_of(table: pa.Table) -> Iterable[bytes | np.ndarray]:
    """The images of the column `image`: encoded files, or pixels uint8 [H, W] or [H, W, C]."""
    return table["image"].to_pylist() if has_files(table) else tensors_of(table["image"])


def has_files(table: pa.Table) -> bool:
    """Whether the images of a table are encoded files."""
    return not isinstance(table["image"].type, pa.FixedShapeTensorType)


def on_all_cores(work: Callable[[Any, str], _Found], table: pa.Table, where: Callable[[int], str]) -> list[_Found]:
    """Calls `work` with each image of a table and its location, in threads if they are files; the results are in order.
    Raises the exception of the first image for which there is one."""
    images = images_of(table)
    places = map(where, range(len(table)))
    return list(_threads(os.getpid()).map(work, images, places) if has_files(table) else map(work, images, places))


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """A thread for each core of this process, or as many threads as PyTorch and Ray may use; a fork has its own. Pillow
    releases the interpreter's lock while it decodes and resizes."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return ThreadPoolExecutor(int(threads) if threads.isdecimal() else len(os.sched_getaffinity(0)))


def check_pictures(rows: Rows, check: Callable[[Picture], None] = lambda _: None) -> None:
    """Raises RowError for the first image that `check` raises it for or that cannot be decoded. JPEG files are decoded
    at an eighth of their size."""

    def decode(image: bytes | np.ndarray, where: str) -> None:
        picture = opened(image, where)
        check(picture)
        if isinstance(image, bytes):
            picture.image.draft(picture.image.mode, (1, 1))
            picture.decoded(picture.channels)

    on_all_cores(decode, rows.table, rows.where)


def opened(data: bytes | np.ndarray, where: str, as_shown: bool = True) -> Picture:
    """One of the `images_of` a table. Raises DataError for a file that cannot be read."""
    if isinstance(data, np.ndarray):
        image = Image.fromarray(data[..., 0] if data.shape[2:] == (1,) else data)
        return Picture(image, where, as_shown, may_be_turned=False)
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise too_large(where) from None
    except Exception as error:
        if is_pointer(data):
            kind = f"{POINTER}; {POINTER_ADVICE}"
            raise RowError(f"{where} is {kind}", where, kind) from None
        raise _damaged_image(where, error) from None
    if image.width * image.height > MAX_PIXELS:
        raise too_large(where)
    if image.mode not in _GRAY_MODES + _COLOR_MODES:
        kind = f"images of mode {image.mode} are not supported; convert to 8 bits per channel"
        raise RowError(f"{where}: {kind}", where, kind)
    return Picture(image, where, as_shown, image.format != "PNG" or any(mark in data for mark in _MARKS_OF_EXIF))


@contextmanager
def _refuse_damaged(where: str) -> Generator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise _damaged_image(where, error) from None


def _damaged_image(where: str, error: Exception) -> RowError:
    """Pillow's readers raise whatever comes up in a file that is not an image."""
    known = f"its format is not supported (supported: {', '.join(FORMATS)})"
    found = known if isinstance(error, UnidentifiedImageError) else error
    return RowError(f"{where} is not a valid image file: {found}", where, "not a valid image file", str(found))


def _on_background(image: Image.Image) -> Image.Image:
    """Puts a transparent image on a white background; a gray image stays gray."""
    background = Image.new("RGBA", image.size, BACKGROUND)
    background.alpha_composite(image.convert("RGBA"))
    return background.convert("L" if image.mode in _GRAY_MODES else "RGB")
