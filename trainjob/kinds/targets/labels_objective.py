"""The objective of models that give rows any number of labels: the right answer on each label."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn import functional

from trainjob.api import ClassWeights, TrainJobSpec
from trainjob.evaluation.label_estimates import name_lists
from trainjob.evaluation.scores.labels import LabelsScores, choose_thresholds, labels_scores
from trainjob.kinds.targets.class_losses import SampleLosses, class_weights, classifier_of, distilled_losses
from trainjob.models.classifier import AnsweringClassifier
from trainjob.models.objective import Gather, of_members

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.targets.several_labels import SeveralLabels


class LabelsTally:
    """Collects the labels of rows and their probabilities, and sums up their losses."""

    def __init__(self, objective: "LabelsObjective", device: torch.device) -> None:
        self._objective = objective
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._labels: list[Tensor] = []
        self._probabilities: list[Tensor] = []

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sum += self._objective.row_losses(answers, batch.labels).sum(dtype=torch.float64)
        self._labels.append(batch.labels.to(torch.int8))
        self._probabilities.append(self._objective.probabilities(answers))

    def combine(self, gathered: Gather) -> None:
        parts = gathered(
            (
                self._loss_sum.cpu(),
                [each.cpu() for each in self._labels],
                [each.cpu() for each in self._probabilities],
            )
        )
        self._loss_sum = torch.stack([loss_sum for loss_sum, _, _ in parts]).sum()
        self._labels = [each for _, labels, _ in parts for each in labels]
        self._probabilities = [each for _, _, probabilities in parts for each in probabilities]

    def scores(self) -> LabelsScores:
        """Also chooses the thresholds where the target has none yet."""
        labels, probabilities = (torch.cat(each).cpu().numpy() for each in (self._labels, self._probabilities))
        order = np.lexsort(probabilities.T)  # whatever ranks and batches the rows were in
        labels, probabilities, target = labels[order], probabilities[order], self._objective.target
        thresholds = target.thresholds or choose_thresholds(labels, probabilities)
        return labels_scores(target.names, labels, probabilities, thresholds, self._loss_sum.item())


class LabelsObjective:
    """Trains on the labels and, if there is a teacher, on its logits; scores on the labels."""

    unit: None = None

    def __init__(self, spec: TrainJobSpec, target: "SeveralLabels", module: AnsweringClassifier) -> None:
        """Raises UserError if the class weights do not name exactly the labels."""
        self.target, self.probabilities = target, module.probabilities
        path = f"spec.model.{spec.model.facts.field}.classWeights.values"
        weights = _positive_weights(classifier_of(spec.model).class_weights, target, path)
        self.row_losses: SampleLosses = lambda logits, labels: functional.binary_cross_entropy_with_logits(
            logits.float(), labels, reduction="none", pos_weight=None if weights is None else weights.to(logits.device)
        ).mean(dim=1)
        distillation = spec.training.distillation
        self._distilled = (
            distilled_losses(target.loss(classifier_of(spec.model)), distillation, self.row_losses)
            if distillation is not None
            else None
        )

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        if self._distilled is None:
            return of_members(self.row_losses, answers, batch.labels)
        assert batch.teacher is not None
        return of_members(self._distilled, answers, batch.labels, batch.teacher)

    def tally(self, device: torch.device) -> LabelsTally:
        return LabelsTally(self, device)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        probabilities = self.probabilities(answers).cpu().numpy()
        labels = batch.labels.cpu().numpy().astype(bool)
        return pa.table(
            {
                "row": pa.array(batch.rows, pa.int64()),
                "prediction": name_lists(self.target.given(probabilities), self.target.names),
                "label": name_lists(labels, self.target.names),
                "probabilities": pa.array(list(probabilities), pa.list_(pa.float32())),
            }
        )


def _positive_weights(spec: ClassWeights | None, target: "SeveralLabels", path: str) -> Tensor | None:
    """The weight of each label in the loss of rows that have it, float32 [L]; None where all are 1."""
    if spec is None:
        return None
    if spec.values is not None:
        return class_weights(spec, target, path)
    counts = torch.tensor(target.counts, dtype=torch.float64)
    return ((target.rows - counts) / counts.clamp(min=1)).float()
