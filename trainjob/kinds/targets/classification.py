"""The objective of classifiers: the right class of each row."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from trainjob.api import TrainJobSpec
from trainjob.errors import UserError
from trainjob.evaluation import ClassificationScores, Confusion, classification_scores
from trainjob.evaluation.predictions import kept_classes, ranked_table
from trainjob.kinds.classifier import LABEL_METRICS
from trainjob.kinds.targets.class_losses import SampleLosses, classifier_of, distilled_losses, sample_losses
from trainjob.models.classifier import AnsweringClassifier
from trainjob.models.objective import Gather, of_members

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.targets.one_class import OneClass


class ClassTally:
    """Counts rows by true and predicted class, and sums up their losses."""

    def __init__(self, classes: list[str], losses: SampleLosses, device: torch.device) -> None:
        self._classes, self._losses = classes, losses
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._cells: list[Tensor] = []

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sum += self._losses(answers, batch.labels).sum(dtype=torch.float64)
        self._cells.append(batch.labels * len(self._classes) + answers.argmax(dim=1))

    def combine(self, gathered: Gather) -> None:
        parts = gathered((self._loss_sum.cpu(), [cells.cpu() for cells in self._cells]))
        self._loss_sum = torch.stack([loss_sum for loss_sum, _ in parts]).sum()
        self._cells = [cells for _, part in parts for cells in part]

    def scores(self) -> ClassificationScores:
        cells, rows = np.unique(torch.cat(self._cells).cpu().numpy(), return_counts=True)
        confusion = Confusion.of(cells // len(self._classes), cells % len(self._classes), rows)
        return classification_scores(confusion, self._loss_sum.item(), self._classes)


class Classification:
    """Trains on labels and, if there is a teacher, on its logits; scores on labels."""

    unit: None = None

    def __init__(self, spec: TrainJobSpec, target: "OneClass", module: AnsweringClassifier) -> None:
        """Raises UserError if the class weights do not name exactly the classes of the data, or checkpoints are chosen
        by a metric of several labels."""
        if (metric := spec.checkpoints.metric) in LABEL_METRICS:
            raise UserError(
                f"spec.checkpoints.metric: {metric} is for rows with several labels, and these have one each; choose "
                "another, such as validation_f1"
            )
        self._classes, self._probabilities = target.classes, module.probabilities
        self._sample_losses = sample_losses(spec.model, target)
        distillation = spec.training.distillation
        self._distilled: Callable[[Tensor, Tensor, Tensor], Tensor] | None = (
            distilled_losses(classifier_of(spec.model).loss, distillation, self._sample_losses)
            if distillation is not None
            else None
        )

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        if self._distilled is None:
            return of_members(self._sample_losses, answers, batch.labels)
        assert batch.teacher is not None
        return of_members(self._distilled, answers, batch.labels, batch.teacher)

    def tally(self, device: torch.device) -> ClassTally:
        return ClassTally(self._classes, self._sample_losses, device)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        probabilities, ranked = self._probabilities(answers).sort(dim=1, descending=True, stable=True)
        kept = kept_classes(len(self._classes))
        ranked, probabilities = (tensor[:, :kept].cpu().numpy() for tensor in (ranked, probabilities))
        return ranked_table(batch.rows, ranked, probabilities, batch.labels.cpu().numpy())
