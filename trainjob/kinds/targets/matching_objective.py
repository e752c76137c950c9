"""The objective of embedders: the second text of a pair is to be closer to the first than those of other pairs.

It is sentence-transformers' MultipleNegativesRankingLoss: the cross-entropy of the scaled cosines of a first text with
the second texts of the batch, on all ranks. The second texts of other pairs are left out where they are known to belong
to the first text: they equal its own, or the first text, or also belong to an equal first text.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, distributed
from torch.nn import functional

from trainjob.evaluation.ranks import HASH, LOW, ranks_of
from trainjob.evaluation.scores.retrieval import RetrievalScores, retrieval_scores
from trainjob.kinds.targets.matching_text import vectors_table
from trainjob.models.objective import Gather

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


class MatchingTally:
    """Collects the vectors of a set."""

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

    def scores(self) -> RetrievalScores:
        """They do not depend on how the rows were divided into batches and among ranks."""
        vectors, labels = torch.cat(self._vectors), torch.cat(self._labels)
        order = np.lexsort((labels.numpy(), (labels & LOW).numpy()))
        vectors, labels = vectors[order], labels[order]
        shuffled = np.random.default_rng(0).permutation(len(labels))
        blocks = (shuffled[start : start + self._batch_size] for start in range(0, len(labels), self._batch_size))
        losses = [ranking_losses(vectors[rows, 0], vectors[rows, 1], labels[rows], self._scale) for rows in blocks]
        first, second = vectors.numpy()[:, 0], vectors.numpy()[:, 1]
        ranks = ranks_of(labels.numpy(), lambda rows, texts: first[rows] @ second[texts].T)
        return retrieval_scores(ranks, len(np.unique(labels & LOW)), torch.cat(losses).mean().item())


class MatchingObjective:
    """Minimizes that loss; scores by the rank of the right text among those of the whole set."""

    unit: None = None

    def __init__(self, scale: float, batch_size: int) -> None:
        self._scale, self._batch_size = scale, batch_size

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """Every rank must call this at once, also those without rows of their own."""
        first, second = answers.float().unbind(1)
        return ranking_losses(first, second, batch.labels, self._scale, batch.is_real)

    def tally(self, device: torch.device) -> MatchingTally:
        return MatchingTally(self._scale, self._batch_size)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        return vectors_table(batch.rows, batch.labels.cpu().numpy(), answers.float().cpu().numpy())


def ranking_losses(first: Tensor, second: Tensor, labels: Tensor, scale: float, is_real: bool = True) -> Tensor:
    """The losses [n] of pairs with these vectors [n, d] and labels int64 [n], among the second texts of all ranks if
    gradients are computed. Rows that are not real do not count."""
    texts, others, own = second, labels, 0
    is_there = torch.ones_like(labels, dtype=torch.bool)
    if torch.is_grad_enabled() and distributed.is_initialized() and distributed.get_world_size() > 1:
        counts = _gathered(torch.tensor([len(labels)], device=labels.device))
        most, ranks = int(counts.max()), len(counts)
        padding = most - len(labels)
        own = distributed.get_rank() * most
        texts = GatherVectors.apply(functional.pad(second, (0, 0, 0, padding)))
        others = _gathered(functional.pad(labels, (0, padding)))
        is_there = _gathered(functional.pad(torch.full_like(labels, is_real), (0, padding))).bool()
        assert len(others) == most * ranks
    index = torch.arange(len(labels), device=labels.device)
    column = index + own
    excluded = (labels[:, None] & LOW) == (others & LOW)
    excluded |= (labels[:, None] >> 32) == (others >> 32)
    excluded |= (labels[:, None] >> 32) == (others & HASH)
    excluded |= ~is_there
    excluded[index, column] = False
    logits = (scale * first @ texts.T).masked_fill(excluded, -torch.inf)
    return functional.cross_entropy(logits, column, reduction="none")


class GatherVectors(torch.autograd.Function):
    """The vectors of all ranks, [ranks * n, d], of those of each, [n, d], in one array. The gradient of a rank's own
    vectors is the sum of those on all ranks."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:  # pyrefly: ignore[bad-override]
        return _gathered(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        gradient = gradient.contiguous()
        distributed.all_reduce(gradient)
        return gradient.chunk(distributed.get_world_size())[distributed.get_rank()]


def _gathered(tensor: Tensor) -> Tensor:
    """The tensors of all ranks, each [n, ...], one after the other."""
    ranks = distributed.get_world_size()
    found = tensor.new_empty(ranks * len(tensor), *tensor.shape[1:])
    distributed.all_gather_into_tensor(found, tensor.contiguous())
    return found
