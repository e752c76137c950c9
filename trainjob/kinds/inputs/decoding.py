"""Decodes images on all cores, at one size, and keeps them for the next pass over the same rows."""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from trainjob.data.read.pictures import Picture, has_files, on_all_cores, opened
from trainjob.data.row_cache import ROW_CACHE


class DecodedImage(NamedTuple):
    """An image at the size that a network takes."""

    pixels: np.ndarray
    """uint8 [H, W] in gray, or [H, W, 3]."""
    marks: int
    """`Picture.marks` of its file."""

    @property
    def channels(self) -> int:
        return 1 if self.pixels.ndim == 2 else 3


@dataclass(frozen=True)
class ImageDecoder:
    """Brings images to one size. Picklable."""

    width: int
    height: int
    channels: int | None
    """1 for gray, 3 for RGB; None for as many as an image has."""
    check: Callable[[Picture], None]
    """Raises RowError for an image whose shape cannot be used."""
    as_shown: bool = True
    scaled: bool = True
    """Whether a JPEG file is decoded at the smallest of its own scales that is large enough, rather than at full
    size."""

    def decode(self, table: pa.Table, where: Callable[[int], str]) -> list[DecodedImage]:
        """Decodes and caches the images of a table. Raises RowError for the first one that cannot be used."""

        def decoded(data: bytes, where: str) -> DecodedImage:
            key = self._key(data)
            found = ROW_CACHE.get(key)
            if found is None or not self._fits(found):
                found = self._decoded(data, where)
                ROW_CACHE.put(key, found, found.pixels.nbytes)
            return found

        return self._each(decoded, table, where)

    def take(self, table: pa.Table, where: Callable[[int], str]) -> list[DecodedImage]:
        """Decodes the images of a table, or takes them out of the cache. Raises RowError for the first one that cannot
        be used."""

        def taken(data: bytes, where: str) -> DecodedImage:
            found = ROW_CACHE.take(self._key(data)) if len(ROW_CACHE) else None
            return found if found is not None and self._fits(found) else self._decoded(data, where)

        return self._each(taken, table, where)

    def _each(
        self, work: Callable[[bytes, str], DecodedImage], table: pa.Table, where: Callable[[int], str]
    ) -> list[DecodedImage]:
        return on_all_cores(work if has_files(table) else self._decoded, table, where)

    def _fits(self, found: DecodedImage) -> bool:
        return self.channels in (None, found.channels)

    def _key(self, data: bytes) -> Hashable:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        return digest, self.width, self.height, self.as_shown, self.scaled

    def _decoded(self, data: bytes | np.ndarray, where: str) -> DecodedImage:
        picture, size = opened(data, where, self.as_shown), (self.width, self.height)
        self.check(picture)
        image = picture.resized(self.channels or picture.channels, size, self.scaled)
        return DecodedImage(np.asarray(image), picture.marks)
