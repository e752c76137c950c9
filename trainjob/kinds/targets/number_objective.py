"""The objective of regressors: the error of each number."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn import functional

from trainjob.evaluation import Scores
from trainjob.evaluation.scores.numbers import number_scores
from trainjob.kinds.regressor import RegressionLoss
from trainjob.models.objective import Gather, of_members

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.targets.number import OneNumber

Losses = Callable[[Tensor, "Batch"], Tensor]


class NumberTally:
    """Collects labels and predictions, and sums up their losses. `numbers` converts answers to predictions, float64
    [n]; `scores` computes the scores from the labels, the predictions and the sum of losses."""

    def __init__(
        self,
        numbers: Callable[[Tensor], Tensor],
        losses: Losses,
        scores: Callable[[np.ndarray, np.ndarray, float], Scores],
        device: torch.device,
    ) -> None:
        self._numbers, self._losses, self._scores = numbers, losses, scores
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._labels: list[Tensor] = []
        self._predicted: list[Tensor] = []

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sum += self._losses(answers, batch).sum(dtype=torch.float64)
        self._labels.append(batch.labels)
        self._predicted.append(self._numbers(answers))

    def combine(self, gathered: Gather) -> None:
        parts = gathered((self._loss_sum.cpu(), *map(_joined, (self._labels, self._predicted))))
        self._loss_sum = torch.stack([loss_sum for loss_sum, _, _ in parts]).sum()
        self._labels, self._predicted = [labels for _, labels, _ in parts], [predicted for _, _, predicted in parts]

    def scores(self) -> Scores:
        labels, predicted = (_joined(each).numpy() for each in (self._labels, self._predicted))
        order = np.lexsort((predicted, labels))  # so that ranks and batches make no difference
        return self._scores(labels[order], predicted[order], self._loss_sum.item())


class NumberObjective:
    """Minimizes the loss of standardized labels. Scores are in the label's own unit."""

    unit: None = None

    def __init__(self, loss: RegressionLoss, target: "OneNumber") -> None:
        self._target, self._loss = target, loss_of(loss)

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        labels = (batch.labels - self._target.mean) / self._target.std
        return of_members(self._row_losses, answers.float(), labels.float())

    def _row_losses(self, answers: Tensor, labels: Tensor) -> Tensor:
        return self._loss(answers.squeeze(1), labels, reduction="none")

    def tally(self, device: torch.device) -> NumberTally:
        return NumberTally(self._target.numbers, self.losses, number_scores, device)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        columns = {"prediction": self._target.numbers(answers), "label": batch.labels}
        return pa.table({"row": batch.rows, **{name: column.cpu().numpy() for name, column in columns.items()}})


def loss_of(spec: RegressionLoss) -> Callable[..., Tensor]:
    """The loss function, one of `torch.nn.functional`."""
    if spec.huber is not None:
        return partial(functional.huber_loss, delta=spec.huber.delta)
    return functional.l1_loss if spec.absolute_error is not None else functional.mse_loss


def _joined(parts: list[Tensor]) -> Tensor:
    return torch.cat([torch.empty(0, dtype=torch.float64), *(part.cpu() for part in parts)])
