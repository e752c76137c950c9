"""The rank of the right text among all texts by similarity: reciprocal ranks and recall, with their intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import SAMPLES, Estimate, Lead, ScoreEstimates, with_intervals

BLOCK = 512
"""Rows that are compared with all texts at once."""
GROUPS = 1000
"""The number of groups in which the bootstrap draws more rows."""
LOW, HASH = 0xFFFFFFFF, 0x7FFFFFFF
"""Masks: the bits of a label that hold the second text's hash, and the bits of it that a first text's hash has."""


class RankEstimates(ScoreEstimates):
    """Estimates of an embedder's scores."""

    main_field: ClassVar[str] = "mrr"

    mrr: Estimate
    """Mean of 1 / rank."""
    recall_at_1: Estimate
    """Fraction of rows whose text has rank 1."""
    recall_at_10: Estimate
    """Fraction of rows whose text is among the first 10."""


class RankLead(Lead):
    """How much better the first embedder ranks the same rows than the second."""

    main_field: ClassVar[str] = "mrr"

    mrr: Estimate
    """Difference in MRR."""
    recall_at_10: Estimate
    """Difference in recall@10."""


@dataclass(frozen=True)
class RankJudge:
    """Compares ranks, int64 [n]; a row with the rank 0 has no right text, and does not count. The labels are those of
    `MatchingText` or `SameClass`, and do not matter here."""

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        if pa.types.is_nested(column.type):  # the labels of triplets and of classes
            return column.combine_chunks().flatten().to_numpy().reshape(len(column), -1)
        return column.to_numpy().astype(np.int64)

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": predicted})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> RankEstimates:
        terms = _terms(np.sort(predicted[predicted > 0]))
        return RankEstimates(**_estimates(terms, ("mrr", "recall_at_1", "recall_at_10")))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> RankLead:
        ranked = (first > 0) & (second > 0)
        terms = (_terms(first[ranked]) - _terms(second[ranked]))[[0, 2]]
        return RankLead(**_estimates(terms, ("mrr", "recall_at_10")))


def pair_hashes(labels: np.ndarray) -> np.ndarray:
    """The labels of pairs, int64 [n], from the labels of pairs or of triplets, float64 [n, 3]."""
    if labels.ndim == 1:
        return labels
    first, second, _ = labels.astype(np.int64).T
    return (first << 32) | second


def have_others(labels: np.ndarray) -> bool:
    """Whether ranks are meaningful: whether some row has a text that its right text can be compared with. `ranks_of`
    leaves out the texts that belong to a first text, and that text itself. `labels` are those of pairs or triplets."""
    pairs = np.unique(pair_hashes(labels))
    texts = np.unique(pairs & LOW)
    themselves = texts[np.isin(texts & HASH, pairs >> 32)]
    left_out = np.unique(np.concatenate([pairs, (themselves & HASH) << 32 | themselves]))
    _, of_each = np.unique(left_out >> 32, return_counts=True)
    return bool((of_each < len(texts)).any())


def is_closer(first: np.ndarray, second: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Whether the first text of each triplet is closer to the second than to the negative, bool [n], of vectors [n, d]
    of length 1."""
    return (first * second).sum(axis=1) > (first * negative).sum(axis=1)


def share(values: np.ndarray) -> Estimate:
    """The fraction of rows where values, bool [n], are true."""
    return _estimates(values[None].astype(np.float64), ("share",))["share"]


def ranks_of(labels: np.ndarray, similarities: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
    """The rank of each row's second text among the different second texts of all rows, int64 [n] from 1. `labels` are
    those of `MatchingText`, int64 [n]; `similarities` gives those of the first texts of some rows to the second texts
    of others, [rows, others].

    Of several texts that belong to a first text the best counts, and the others are left out, as is the first text
    itself. A text that is as similar as the right one is ahead of it, so vectors that are all equal are at the end.
    """
    _, kept, text_of_row = np.unique(labels & LOW, return_index=True, return_inverse=True)
    _, first_of_row = np.unique(labels >> 32, return_inverse=True)
    order = np.argsort(first_of_row, kind="stable")
    texts_of_first = np.split(text_of_row[order], np.flatnonzero(np.diff(first_of_row[order])) + 1)
    hashes, ranks = labels[kept] & HASH, np.empty(len(labels), np.int64)
    for start in range(0, len(labels), BLOCK):
        rows = slice(start, min(start + BLOCK, len(labels)))
        for row, found in enumerate(similarities(rows, kept), start):
            right_texts = texts_of_first[first_of_row[row]]
            best = found[right_texts].max()
            found[right_texts] = -np.inf
            found[hashes == labels[row] >> 32] = -np.inf
            ranks[row] = 1 + np.sum(found >= best)
    return ranks


def ranks_in_classes(
    classes: np.ndarray, texts: np.ndarray, similarities: Callable[[slice, np.ndarray], np.ndarray]
) -> np.ndarray:
    """The rank of the nearest other text of each row's class among the different texts of all rows, int64 [n] from 1; 0
    where its class has no other. `classes` and `texts`, both [n], identify those of each row; `similarities` is as for
    `ranks_of`.

    A text that is equal to the row's own is left out. A text in several classes counts in each of them.
    """
    _, kept = np.unique(np.stack([classes, texts], axis=1), axis=0, return_index=True)
    ranks = np.empty(len(classes), np.int64)
    for start in range(0, len(classes), BLOCK):
        rows = slice(start, min(start + BLOCK, len(classes)))
        found = similarities(rows, kept)
        found[texts[rows, None] == texts[kept]] = -np.inf
        is_right = (classes[rows, None] == classes[kept]) & (found > -np.inf)
        best = found.max(axis=1, where=is_right, initial=-np.inf)
        ahead = np.sum((found >= best[:, None]) & ~is_right, axis=1)
        ranks[rows] = np.where(is_right.any(axis=1), 1 + ahead, 0)
    return ranks


def _terms(ranks: np.ndarray) -> np.ndarray:
    """The terms whose means are the scores, [3, n]."""
    return np.stack([1 / ranks, ranks <= 1, ranks <= 10]).astype(np.float64)


def _estimates(terms: np.ndarray, names: tuple[str, ...]) -> dict[str, Estimate]:
    """The means over rows, with the intervals of those of bootstrap samples."""
    random, rows = np.random.default_rng(0), terms.shape[1]
    groups = min(rows, GROUPS)
    starts = np.linspace(0, rows, groups, endpoint=False).astype(np.int64)
    sums = np.add.reduceat(terms[:, random.permutation(rows)], starts, axis=1)
    drawn = random.multinomial(groups, np.full(groups, 1 / groups), SAMPLES).T
    samples = (sums @ drawn) / (np.diff(starts, append=rows) @ drawn)
    return with_intervals(terms.mean(axis=1), samples, names)
