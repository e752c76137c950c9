"""What a kind of model supplies to be trained and scored; the loop knows no more of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import torch
from torch import Tensor

from trainjob.evaluation import Scores

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


Gather = Callable[[Any], list[Any]]
"""Gives every rank's value, in order of rank, to every rank. All ranks call it at once."""


class Tally(Protocol):
    """What a model's answers to the batches of a set come to."""

    def add(self, batch: "Batch", answers: Tensor) -> None: ...

    def combine(self, gathered: Gather) -> None:
        """Adds what the other ranks have counted."""
        ...

    def scores(self) -> Scores: ...


class Objective(Protocol):
    """What is asked of a model, by its answers to a batch."""

    @property
    def unit(self) -> str | None:
        """What the batches' weights count; None where they count rows."""
        ...

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """Of whatever counts in the batch: float32 [rows], or [tokens]. A step minimizes their sum over the sum of the
        batches' weights, over all batches and ranks of the step."""
        ...

    def tally(self, device: torch.device) -> Tally:
        """An empty one."""
        ...

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table | None:
        """What is worth keeping of the answer to each row of a batch that is scored: a table with the column `row`,
        its place in the set. None for a model that predicts nothing of a row as a whole."""
        ...
