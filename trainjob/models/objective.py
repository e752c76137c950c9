"""The protocols for training and scoring a model; the training loop knows nothing else about it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import torch
from torch import Tensor

from trainjob.evaluation import Scores

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


Gather = Callable[[Any], list[Any]]
"""Returns every rank's value, in order of rank, on every rank. All ranks must call it at the same point."""


def of_members(losses: Callable[..., Tensor], answers: Tensor, *others: Tensor) -> Tensor:
    """The losses of rows [n] that `losses` computes of answers [n, width] and `others` [n, ...]. Of answers of several
    members of an ensemble, [n, members, width], which learn each by itself, the means of the members' losses."""
    if answers.dim() == 2:
        return losses(answers, *others)
    members = answers.shape[1]
    repeated = (other.repeat_interleave(members, dim=0) for other in others)
    return losses(answers.flatten(0, 1), *repeated).unflatten(0, (-1, members)).mean(dim=1)


class Tally(Protocol):
    """Accumulates the scores of a model's answers to the batches of a set."""

    def add(self, batch: "Batch", answers: Tensor) -> None: ...

    def combine(self, gathered: Gather) -> None:
        """Adds the sums of the other ranks."""
        ...

    def scores(self) -> Scores: ...


class Objective(Protocol):
    """Trains and scores a model by its answers to batches."""

    @property
    def unit(self) -> str | None:
        """The unit of the batches' weights; None if they count rows."""
        ...

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """The losses of a batch: float32 [rows], or [tokens]. A step minimizes their sum divided by the sum of the
        batches' weights, over all batches and ranks of the step."""
        ...

    def tally(self, device: torch.device) -> Tally:
        """An empty tally."""
        ...

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table | None:
        """The predictions to keep for the rows of a scored batch: a table with the column `row`, the position in the
        set. None for models without a prediction per row."""
        ...
