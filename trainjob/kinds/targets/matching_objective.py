"""The objective of embedders: the second text of a pair must be closer to the first than the second texts of other
pairs.

It is sentence-transformers' MultipleNegativesRankingLoss: the cross-entropy of the scaled cosines of a first text with
the second texts of the batch, on all ranks, and with the third texts of triplets, which are hard negatives. Texts that
are known to belong to the first text are left out: those that equal it or its second text, and the second texts of
equal first texts.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn import functional

from trainjob.evaluation.ranks import HASH, LOW, is_closer, pair_hashes, ranks_of
from trainjob.evaluation.scores.retrieval import RetrievalScores, retrieval_scores
from trainjob.kinds.targets.all_ranks import of_all_ranks
from trainjob.kinds.targets.vector_tally import VectorTally
from trainjob.kinds.targets.vectors import vectors_table

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


class MatchingTally(VectorTally):
    """Scores by the rank of the right text."""

    def scores(self) -> RetrievalScores:
        vectors, labels = self._collected()
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
    """Minimizes this loss. Scores are based on the rank of the right text among all texts of the set."""

    unit: None = None

    def __init__(self, scale: float, batch_size: int) -> None:
        self._scale, self._batch_size = scale, batch_size

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """Every rank must call this at the same point, even without rows of its own."""
        return ranking_losses(answers.float(), batch.labels, self._scale, batch.is_real)

    def tally(self, device: torch.device) -> MatchingTally:
        return MatchingTally(self._scale, self._batch_size)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        return vectors_table(batch.rows, batch.labels.cpu().numpy(), answers.float().cpu().numpy())


def ranking_losses(vectors: Tensor, labels: Tensor, scale: float, is_real: bool = True) -> Tensor:
    """The losses [n] of pairs or triplets with these vectors [n, 2 or 3, d] and the labels of `MatchingText`, among the
    texts of all ranks if gradients are computed; rows that are not real do not count."""
    hashes = _hashes(labels)
    texts, others, is_there, start = of_all_ranks(vectors[:, 1:], hashes, is_real)
    row = start + torch.arange(len(labels), device=labels.device)
    excluded = hashes[:, 1, None, None] == others[:, 1:]
    excluded |= hashes[:, 0, None, None] == (others[:, 1:] & HASH)
    excluded[:, :, 0] |= hashes[:, :1] == others[:, 0]
    excluded |= ~is_there[:, None]
    right = row * texts.shape[1]
    excluded = excluded.flatten(1).scatter(1, right[:, None], False)
    logits = (scale * vectors[:, 0] @ texts.flatten(0, 1).T).masked_fill(excluded, -torch.inf)
    return functional.cross_entropy(logits, right, reduction="none")


def _hashes(labels: Tensor) -> Tensor:
    """The hashes of each row's texts, int64 [n, 2 or 3], of the labels of `MatchingText`."""
    return torch.stack([labels >> 32, labels & LOW], dim=1) if labels.dim() == 1 else labels.long()
