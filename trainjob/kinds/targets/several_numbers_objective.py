"""The objective of regressors that predict several numbers: the mean of the columns' losses."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from trainjob.evaluation.scores.several_numbers import SeveralNumbersScores, several_number_scores
from trainjob.evaluation.several_number_estimates import named_columns
from trainjob.kinds.regressor import RegressionLoss
from trainjob.kinds.targets.number_objective import loss_of
from trainjob.models.objective import Gather, of_members

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.targets.several_numbers import SeveralNumbers


class SeveralNumbersTally:
    """Collects labels and predictions, and sums up the losses of each column."""

    def __init__(self, objective: "SeveralNumbersObjective", device: torch.device) -> None:
        self._objective, self._target = objective, objective.target
        self._loss_sums = torch.zeros(self._target.width, dtype=torch.float64, device=device)
        self._labels = [np.empty((0, self._target.width))]
        self._predicted = [np.empty((0, self._target.width))]

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sums += self._objective.column_losses(answers, batch.labels).sum(dim=0, dtype=torch.float64)
        self._labels.append(batch.labels.cpu().numpy())
        self._predicted.append(self._target.numbers(answers.cpu().numpy()))

    def combine(self, gathered: Gather) -> None:
        parts = gathered((self._loss_sums.cpu(), *map(np.concatenate, (self._labels, self._predicted))))
        self._loss_sums = torch.stack([loss_sums for loss_sums, _, _ in parts]).sum(dim=0)
        self._labels, self._predicted = [labels for _, labels, _ in parts], [predicted for _, _, predicted in parts]

    def scores(self) -> SeveralNumbersScores:
        labels, predicted = np.concatenate(self._labels), np.concatenate(self._predicted)
        order = np.lexsort((*predicted.T, *labels.T))  # whatever ranks and batches the rows were in
        target = self._target
        return several_number_scores(
            target.names, target.std, labels[order], predicted[order], self._loss_sums.cpu().numpy()
        )


class SeveralNumbersObjective:
    """Minimizes the loss of standardized labels, the mean of the columns. Scores are in the columns' units."""

    unit: None = None

    def __init__(self, loss: RegressionLoss, target: "SeveralNumbers") -> None:
        self.target, self._loss = target, loss_of(loss)
        self._mean, self._std = torch.from_numpy(target.mean), torch.from_numpy(target.std)

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        return of_members(lambda *both: self.column_losses(*both).mean(dim=1), answers, batch.labels)

    def column_losses(self, answers: Tensor, labels: Tensor) -> Tensor:
        """float32 [n, L]."""
        standardized = (labels - self._mean.to(labels.device)) / self._std.to(labels.device)
        return self._loss(answers.float(), standardized.float(), reduction="none")

    def tally(self, device: torch.device) -> SeveralNumbersTally:
        return SeveralNumbersTally(self, device)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        labels, predicted = batch.labels.cpu().numpy(), self.target.numbers(answers.cpu().numpy())
        columns = {"prediction": predicted, "label": labels, "error": (predicted - labels) / self.target.std}
        named = {name: named_columns(numbers, self.target.names) for name, numbers in columns.items()}
        return pa.table({"row": batch.rows, **named})
