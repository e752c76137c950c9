"""Collects the vectors of a set, so that each row can be compared with all others."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainjob.evaluation.scores.retrieval import RetrievalScores
from trainjob.models.objective import Gather

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


class VectorTally(ABC):
    """Collects vectors and labels over batches and ranks; a subclass scores them."""

    def __init__(self, scale: float, batch_size: int) -> None:
        self._scale, self._batch_size = scale, batch_size
        self._vectors: list[Tensor] = []
        self._labels: list[Tensor] = []

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._vectors.append(answers.float().cpu())
        self._labels.append(batch.labels.cpu())

    def combine(self, gathered: Gather) -> None:
        parts = gathered((self._vectors, self._labels))
        self._vectors = [each for vectors, _ in parts for each in vectors]
        self._labels = [each for _, labels in parts for each in labels]

    def _collected(self) -> tuple[Tensor, Tensor]:
        """The vectors, float32 [n, ...], and the labels [n, ...], in any order."""
        return torch.cat(self._vectors), torch.cat(self._labels)

    @abstractmethod
    def scores(self) -> RetrievalScores:
        """The scores, whatever the division of the rows into batches and among ranks."""
