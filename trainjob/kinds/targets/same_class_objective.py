"""The objective of embedders that learn from classes: texts of the same class must be close to each other.

It is the supervised contrastive loss (Khosla et al. 2020, "SupCon", the form with the sum outside of the logarithm):
for each text, the mean, over the texts of its class, of the cross-entropy of the scaled cosines with all other texts of
the batch, on all ranks. Texts that are equal are never compared. A text whose class has no other text in the batch has
a loss of 0, but still counts as a text that others must be far from.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from trainjob.data.batches.groups import in_groups
from trainjob.evaluation.ranks import ranks_in_classes
from trainjob.evaluation.scores.retrieval import SameClassScores, same_class_scores
from trainjob.kinds.targets.all_ranks import of_all_ranks
from trainjob.kinds.targets.vector_tally import VectorTally
from trainjob.kinds.targets.vectors import MIN_TEXTS_OF_CLASS, vectors_table

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


class SameClassTally(VectorTally):
    """Scores by the rank of the nearest text of the same class."""

    def scores(self) -> SameClassScores:
        vectors, labels = self._collected()
        order = np.lexsort(labels.numpy().T)
        vectors, labels = vectors[order], labels[order]
        classes, texts = labels.numpy().T
        random = np.random.default_rng(0)
        shuffled, _ = in_groups(random.permutation(len(labels)), classes, MIN_TEXTS_OF_CLASS, random)
        blocks = (shuffled[start : start + self._batch_size] for start in range(0, len(labels), self._batch_size))
        losses = [contrastive_losses(vectors[rows], labels[rows], self._scale) for rows in blocks]
        found = vectors.numpy()
        ranks = ranks_in_classes(classes, texts, lambda rows, others: found[rows] @ found[others].T)
        return same_class_scores(ranks, len(np.unique(texts)), torch.cat(losses).mean().item())


class SameClassObjective:
    """Minimizes the supervised contrastive loss."""

    unit: None = None

    def __init__(self, scale: float, batch_size: int) -> None:
        self._scale, self._batch_size = scale, batch_size

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """Every rank must call this at the same point, even without rows of its own."""
        return contrastive_losses(answers.float(), batch.labels, self._scale, batch.is_real)

    def tally(self, device: torch.device) -> SameClassTally:
        return SameClassTally(self._scale, self._batch_size)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        return vectors_table(batch.rows, batch.labels.cpu().numpy(), answers.float().cpu().numpy()[:, None])


def contrastive_losses(vectors: Tensor, labels: Tensor, scale: float, is_real: bool = True) -> Tensor:
    """The losses [n] of texts with these vectors [n, d] and the labels of `SameClass`, float64 [n, 2], among the texts
    of all ranks if gradients are computed; rows that are not real do not count."""
    every = of_all_ranks(vectors, labels, is_real)
    is_other = (labels[:, 1, None] != every.labels[:, 1]) & every.is_there
    is_right = is_other & (labels[:, 0, None] == every.labels[:, 0])
    # not -inf: a text may have no other, and the gradient of its loss is to be 0
    logits = (scale * vectors @ every.vectors.T).masked_fill(~is_other, torch.finfo(vectors.dtype).min)
    losses = (logits.logsumexp(1, keepdim=True) - logits).masked_fill(~is_right, 0)
    return losses.sum(1) / is_right.sum(1).clamp(min=1)
