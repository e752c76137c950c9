"""The scores of an embedder that learns from pairs with scores: how well the cosines agree with those scores."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import Estimate
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.scores.base import WHEN_SCORED, Worst, check_finite
from trainjob.evaluation.scores.estimated import EstimatedScores
from trainjob.evaluation.similarity import SimilarityEstimates, SimilarityJudge, SimilarityLead
from trainjob.formatting import count

AIM = "aim"
"""The column of predictions with the cosine that the score corresponds to."""


class SimilarityScores(EstimatedScores):
    """How well the cosines of the pairs of a set agree with their scores."""

    section: ClassVar[str] = "similarity.html.j2"
    caution: ClassVar[str] = "It puts every text near others, even if none of them belongs to it."
    hub_types: ClassVar[tuple[str, ...]] = ("spearman_cosine", "pearson_cosine")
    unit: ClassVar[str] = "pairs"
    stored_columns: ClassVar[tuple[str, ...]] = ("row", "label", "prediction", AIM)

    rows: int
    """Number of pairs."""
    loss: float
    """Mean squared difference of the cosine from the score, scaled to 0 to 1."""
    spearman: Estimate
    """Spearman's rank correlation of cosine and score; 0 where all cosines or all scores are equal."""
    pearson: Estimate
    """Pearson's correlation of cosine and score."""

    @property
    def purpose(self) -> str:
        return "embed texts, so that the cosine of two vectors measures how similar the texts are"

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> SimilarityJudge:
        return SimilarityJudge()

    @classmethod
    def compared_types(cls) -> tuple[type[SimilarityEstimates], type[SimilarityLead]]:
        return SimilarityEstimates, SimilarityLead

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The pairs whose cosine is furthest from the one that the score corresponds to."""
        errors = predictions["prediction"].to_numpy() - predictions[AIM].to_numpy()
        indices = np.argsort(-np.abs(errors), kind="stable")[:MAX_WORST_ROWS]
        lines = [
            (f"cosine {line['prediction']:.3f}", f"{line[AIM]:.3f} would be right", f"score {line['label']:g}")
            for line in predictions.take(indices).to_pylist()
        ]
        summary = f"The {len(indices)} of {count(len(errors))} {set_name} pairs with the largest errors."
        return Worst("Which pairs are off most", summary, indices, lines)


def similarity_scores(labels: np.ndarray, cosines: np.ndarray, loss_sum: float) -> SimilarityScores:
    """The scores of cosines float64 [n] for scores float64 [n]. Raises Diverged if the loss is not finite."""
    check_finite("the loss", loss_sum, WHEN_SCORED)
    found = SimilarityJudge().estimates(labels, cosines)
    return SimilarityScores(
        rows=len(labels), loss=loss_sum / len(labels), spearman=found.spearman, pearson=found.pearson
    )
