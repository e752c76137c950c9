"""The base class of the targets of embedders, whose answer to a text is its vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_arrow
from trainjob.data.read.csv_injection import PREDICTION
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import RowError, listed
from trainjob.kinds.inputs.text import joined_texts
from trainjob.kinds.target import Target
from trainjob.kinds.targets.vector_reply import Vector

if TYPE_CHECKING:
    from torch import Tensor, nn

VECTORS = ("first", "second", "negative")
"""Columns with the vectors of scored rows."""
MIN_TEXTS_OF_CLASS = 2
"""The fewest texts of a class that a batch is to have, if it has one."""


@dataclass(frozen=True)
class Vectors(Target):
    """Answers each text with a vector of `dimensions` numbers."""

    dimensions: int

    @property
    def width(self) -> int:
        return self.dimensions

    def sizes(self) -> dict[str, int]:
        return {"dimensions": self.dimensions}

    def answer(self, outputs: "Tensor", module: "nn.Module") -> pa.Table:
        return pa.table({PREDICTION: vector_lists(outputs.cpu().numpy())})

    @property
    def reply_type(self) -> type[Vector]:
        return Vector

    def replies(self, outputs: "Tensor", module: "nn.Module") -> list[Vector]:
        return [Vector(prediction=vector) for vector in outputs.tolist()]


def rows_with_texts(rows: Rows, groups: Sequence[Sequence[str]], on_bad: OnBadRow) -> tuple[Rows, list[list[str]]]:
    """The rows that have a text in each of these groups of columns, and for each group their texts, without needless
    white space. Other rows are reported in their order, for the first group without a text."""
    texts = [[" ".join(each.split()) for each in joined_texts(rows.table, names, rows.where)] for names in groups]
    are_empty = np.array([[not each for each in own] for own in texts], bool)
    is_bad = are_empty.any(axis=0)
    for index in np.flatnonzero(is_bad).tolist():
        names = groups[int(are_empty[:, index].argmax())]
        location, kind = rows.where(index), f"the text (column {listed(names)}) is empty"
        on_bad(RowError(f"{location}: {kind}: fill it in or drop the row", location, kind))
    kept = np.flatnonzero(~is_bad)
    return rows.take(kept), [[column[index] for index in kept.tolist()] for column in texts]


def vectors_table(rows: np.ndarray, labels: np.ndarray, vectors: np.ndarray) -> pa.Table:
    """The vectors [n, 1, d] of scored texts, [n, 2, d] of pairs, or [n, 3, d] of triplets."""
    found = {name: vector_lists(vectors[:, index]) for index, name in enumerate(VECTORS[: vectors.shape[1]])}
    return pa.table({"row": rows, "label": as_arrow(labels), **found})


def vector_lists(vectors: np.ndarray) -> pa.Array:
    """A column of vectors [n, d]."""
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1])


def vector_matrix(column: pa.ChunkedArray) -> np.ndarray:
    """The vectors in such a column, float32 [n, d]."""
    return np.concatenate([chunk.flatten().to_numpy().reshape(len(chunk), -1) for chunk in column.chunks])
