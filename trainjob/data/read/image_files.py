"""Readers of image folders and of MNIST's IDX files.

Both yield the columns `label` (text) and `image`: the encoded file (binary) from a folder, the pixels (fixed-shape
tensor uint8 [H, W] or [H, W, C]) from IDX files.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_arrow, as_numpy
from trainjob.data.read.opening import open_seekable, open_stream, readable
from trainjob.data.read.partitions import partition_values
from trainjob.data.read.rows import OnBadRow, RowLocation, Rows, refuse
from trainjob.errors import DataError, RowError

IDX_TABLE_BYTES = 4 * 2**20
MAX_CHANNELS = 4
MAX_PIXELS = 2**26
"""Largest image in pixels; it takes 192 MiB as RGB, however small its file is."""
_UINT8 = 8


@dataclass(frozen=True)
class ImageFiles:
    """Some files of an image folder. The folder that contains a file is its label, if there is one."""

    uri: str
    endpoint: str | None
    size: int
    names: tuple[str, ...]
    """`<label>/…`, or only the file's name, relative to `uri`."""

    @property
    def is_loose(self) -> bool:
        """Whether none of the files has a label."""
        return not any("/" in name for name in self.names)

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        labels = [_label_of(name) for name in self.names]
        table = {"label": pa.array(labels, pa.string())}
        if columns is None or "image" in columns:
            table["image"] = pa.array([self._bytes(name) for name in self.names], pa.binary())
        yield Rows(pa.table(table), lambda index: RowLocation(f"{self.uri}/{self.names[index]}"))

    def _bytes(self, name: str) -> bytes:
        uri = f"{self.uri}/{name}"
        with readable(uri, "image"), open_seekable(uri, self.endpoint) as file:
            return file.read()


def _label_of(name: str) -> str | None:
    """The class in a file's path: `cat/1.png`, or `label=cat/1.png` as Hive and Spark name folders."""
    folder, slash, _ = name.partition("/")
    return dict(partition_values(name)).get("label", folder) if slash else None


@dataclass(frozen=True)
class IDXFiles:
    """A file of images and a file of their labels, in MNIST's format (http://yann.lecun.com/exdb/mnist/)."""

    uri: str
    """The file of images."""
    labels_uri: str
    endpoint: str | None
    size: int

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        with readable(self.labels_uri, "IDX"), open_stream(self.labels_uri, self.endpoint) as file:
            (count,) = _header(file, self.labels_uri, dimensions=(1,))
            labels = np.frombuffer(_body(file, count, self.labels_uri), np.uint8)
            _check_end(file, self.labels_uri)
        with readable(self.uri, "IDX"), open_stream(self.uri, self.endpoint) as file:
            images, *shape = _header(file, self.uri, dimensions=(3, 4))
            if images != count:
                raise DataError(f"{self.uri} has {images} images but {self.labels_uri} has {count} labels")
            if 0 in shape or (shape[2:] and shape[2] > MAX_CHANNELS):
                found = " x ".join(map(str, shape))
                raise DataError(f"{self.uri} has images of {found} pixels: it is damaged or empty")
            if prod(shape[:2]) > MAX_PIXELS:
                raise too_large(self.uri)
            rows = max(1, IDX_TABLE_BYTES // max(1, prod(shape)))
            for start in range(0, count, rows):
                batch = labels[start : start + rows]
                table = {"label": as_arrow(batch).cast(pa.string())}
                if columns is None or "image" in columns:
                    pixels = np.frombuffer(_body(file, len(batch) * prod(shape), self.uri), np.uint8)
                    table["image"] = image_tensor(pixels.reshape(-1, *shape))
                yield Rows(pa.table(table), _where(self.uri, start + 1))
            if columns is None or "image" in columns:
                _check_end(file, self.uri)


def image_tensor(images: np.ndarray) -> pa.ExtensionArray:
    """An image column from uint8 [n, H, W] or [n, H, W, C]."""
    shape = images.shape[1:]
    pixels = pa.FixedSizeListArray.from_arrays(as_arrow(images.reshape(-1)), prod(shape))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.uint8(), shape), pixels)


def tensors_of(column: pa.ChunkedArray) -> Iterator[np.ndarray]:
    """The images of such a column, each uint8 [H, W] or [H, W, C]."""
    for chunk in column.chunks:
        yield from as_numpy(chunk.storage.flatten()).reshape(-1, *chunk.type.shape)


def too_large(where: str) -> RowError:
    kind = f"images of more than {MAX_PIXELS:,} pixels are not supported"
    return RowError(f"{where}: {kind}; make them smaller", where, kind)


def _where(uri: str, first: int) -> Callable[[int], RowLocation]:
    return lambda index: RowLocation(uri, "image", first + index)


def _header(file: pa.NativeFile, uri: str, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes in the header: the number of items, then the dimensions of one."""
    magic = _body(file, 4, uri)
    if magic[:3] != bytes([0, 0, _UINT8]) or magic[3] not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise DataError(
            f"{uri} is not an IDX file of unsigned bytes with {wanted} dimensions: it begins with {magic.hex(' ')}"
        )
    return tuple(int(size) for size in np.frombuffer(_body(file, 4 * magic[3], uri), ">u4"))


def _body(file: pa.NativeFile, size: int, uri: str) -> bytes:
    """Reads `size` bytes in chunks: a damaged header may ask for more than there is memory."""
    pieces: list[bytes] = []
    while size > 0:
        pieces.append(file.read(min(size, IDX_TABLE_BYTES)))
        size -= len(pieces[-1])
        if not pieces[-1]:
            raise DataError(f"{uri} ends too early: it is cut off or not an IDX file")
    return b"".join(pieces)


def _check_end(file: pa.NativeFile, uri: str) -> None:
    if file.read(1):
        raise DataError(f"{uri} has data after the last item in its header: it is damaged")
