"""The objective of embedders: the second text of a pair is to be closer to the first than those of other pairs.

It is sentence-transformers' MultipleNegativesRankingLoss: the cross-entropy of the scaled cosines of a first text with
the second texts of the batch, on all ranks, and with the third texts of triplets, which are hard negatives. Texts are
left out where they are known to belong to the first text: they equal its second one, or the first text, or are the
second one of an equal first text.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, distributed
from torch.nn import functional

from trainjob.evaluation.ranks import HASH, LOW, is_closer, pair_hashes, ranks_of
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
        pairs = pair_hashes(labels.numpy())
        order = np.lexsort((pairs, pairs & LOW))
        vectors, labels, pairs = vectors[order], labels[order], pairs[order]
        shuffled = np.random.default_rng(0).permutation(len(labels))
        blocks = (shuffled[start : start + self._batch_size] for start in range(0, len(labels), self._batch_size))
        losses = [ranking_losses(vectors[rows], labels[rows], self._scale) for rows in blocks]
        first, second, *negative = vectors.numpy().swapaxes(0, 1)
        ranks = ranks_of(pairs, lambda rows, texts: first[rows] @ second[texts].T)
        closer = is_closer(first, second, negative[0]) if negative else None
        return retrieval_scores(ranks, len(np.unique(pairs & LOW)), torch.cat(losses).mean().item(), closer)


class MatchingObjective:
    """Minimizes that loss; scores by the rank of the right text among those of the whole set."""

    unit: None = None

    def __init__(self, scale: float, batch_size: int) -> None:
        self._scale, self._batch_size = scale, batch_size

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """Every rank must call this at once, also those without rows of their own."""
        return ranking_losses(answers.float(), batch.labels, self._scale, batch.is_real)

    def tally(self, device: torch.device) -> MatchingTally:
        return MatchingTally(self._scale, self._batch_size)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        return vectors_table(batch.rows, batch.labels.cpu().numpy(), answers.float().cpu().numpy())


def ranking_losses(vectors: Tensor, labels: Tensor, scale: float, is_real: bool = True) -> Tensor:
    """The losses [n] of pairs or triplets with these vectors [n, 2 or 3, d] and the labels of `MatchingText`, among the
    texts of all ranks if gradients are computed; rows that are not real do not count."""
    own = _hashes(labels)
    first, texts, row = vectors[:, 0], vectors[:, 1:], torch.arange(len(labels), device=labels.device)
    others, is_there = own, torch.ones_like(own[:, 0], dtype=torch.bool)
    if torch.is_grad_enabled() and distributed.is_initialized() and distributed.get_world_size() > 1:
        counts = _gathered(torch.tensor([len(labels)], device=labels.device))
        most = int(counts.max())
        padding = most - len(labels)
        row = row + distributed.get_rank() * most
        texts = GatherVectors.apply(functional.pad(texts, (0, 0, 0, 0, 0, padding)))
        others = _gathered(functional.pad(own, (0, 0, 0, padding)))
        is_there = _gathered(functional.pad(torch.full_like(own[:, 0], is_real), (0, padding))).bool()
    excluded = own[:, 1, None, None] == others[:, 1:]
    excluded |= own[:, 0, None, None] == (others[:, 1:] & HASH)
    excluded[:, :, 0] |= own[:, :1] == others[:, 0]
    excluded |= ~is_there[:, None]
    right = row * texts.shape[1]
    excluded = excluded.flatten(1).scatter(1, right[:, None], False)
    logits = (scale * first @ texts.flatten(0, 1).T).masked_fill(excluded, -torch.inf)
    return functional.cross_entropy(logits, right, reduction="none")


def _hashes(labels: Tensor) -> Tensor:
    """The hashes of each row's texts, int64 [n, 2 or 3], of the labels of `MatchingText`."""
    return torch.stack([labels >> 32, labels & LOW], dim=1) if labels.dim() == 1 else labels.long()


class GatherVectors(torch.autograd.Function):
    """The vectors of all ranks, [ranks * n, ...], of those of each, [n, ...], in one array. The gradient of a rank's
    own vectors is the sum of those on all ranks."""

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
