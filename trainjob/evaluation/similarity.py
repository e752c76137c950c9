"""The agreement of the cosines of pairs of texts with their scores, and the lead of one embedder over another."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.correlation import centered, centered_ranks, correlation, moments
from trainjob.evaluation.estimates import Estimate, Lead, ScoreEstimates, bootstrapped, sorted_rows, with_intervals


class SimilarityEstimates(ScoreEstimates):
    """Estimates of the agreement of cosines with scores."""

    main_field: ClassVar[str] = "spearman"

    spearman: Estimate
    """Spearman's rank correlation of cosine and score; 0 where all cosines or all scores are equal."""
    pearson: Estimate
    """Pearson's correlation of cosine and score."""


class SimilarityLead(Lead):
    """How much better the cosines of the first embedder agree with the scores of the same pairs than those of the
    second."""

    main_field: ClassVar[str] = "spearman"

    spearman: Estimate
    """Difference in Spearman's correlation."""
    pearson: Estimate
    """Difference in Pearson's correlation."""


@dataclass(frozen=True)
class SimilarityJudge:
    """Compares cosines with scores, both float64 [n].

    Ranks for Spearman's correlation are those among all pairs, not among the pairs of a sample.
    """

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        return column.to_numpy().astype(np.float64)

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": predicted})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> SimilarityEstimates:
        values, samples = _correlations(*sorted_rows(labels, predicted))
        return SimilarityEstimates(**with_intervals(values, samples, ("spearman", "pearson")))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> SimilarityLead:
        (one, one_drawn), (other, other_drawn) = (_correlations(labels, each) for each in (first, second))
        return SimilarityLead(**with_intervals(one - other, one_drawn - other_drawn, ("spearman", "pearson")))


def _correlations(labels: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spearman's and Pearson's correlation, [2], and those of the bootstrap samples, [2, SAMPLES], which are the same
    rows in every call with as many rows."""
    ranks, numbers = ([change(each) for each in (labels, predicted)] for change in (centered_ranks, centered))
    terms = np.concatenate([moments(*ranks), moments(*numbers)])
    sums = terms.sum(axis=1), bootstrapped(terms)
    values, samples = (np.stack([correlation(each[:6]), correlation(each[6:])]) for each in sums)
    return values, samples
