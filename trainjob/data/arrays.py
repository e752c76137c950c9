"""Converts between Arrow and NumPy without a copy. Arrow's own conversions import pandas, which takes half a second."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def as_numpy(array: pa.Array) -> np.ndarray:
    """The numbers of an array without nulls; not writable."""
    dtype = array.type.to_pandas_dtype()
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def text_bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start of each text of a string array, its number of bytes, both int32 [n], and the bytes of all texts, uint8
    [m]. A null has no bytes."""
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets or bytes(4), np.int32)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]]
    return ends[:-1] - ends[0], np.diff(ends), characters


def as_arrow(array: np.ndarray) -> pa.Array:
    """An array of numbers [n], or of lists of k numbers [n, k]."""
    kind = pa.from_numpy_dtype(array.dtype)
    values = pa.Array.from_buffers(kind, array.size, [None, pa.py_buffer(np.ascontiguousarray(array))])
    return values if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(values, array.shape[1])


def as_texts(texts: Sequence[str]) -> pa.Array:
    """An array of texts."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], dtype=np.int64, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def as_lists(values: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    """Rows of the given lengths, one after the other in `values`."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(as_arrow(offsets), as_arrow(values))
