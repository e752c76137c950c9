"""The scores of an embedder: the rank of the right text among all texts of a set."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import Estimate
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.ranks import RankEstimates, RankJudge, RankLead, share
from trainjob.evaluation.scores.base import WHEN_SCORED, Measure, Worst, check_finite
from trainjob.evaluation.scores.estimated import EstimatedScores
from trainjob.formatting import count

IS_CLOSER = "is_closer"
"""The column of predictions of triplets: whether the right text is closer than the negative."""
CLASS = "class"
"""The column of predictions with the name of each text's class; null for a class without training rows."""


class RetrievalScores(EstimatedScores):
    """How well an embedder finds the second text of each pair of a set among those of all pairs."""

    section: ClassVar[str] = "retrieval.html.j2"
    caution: ClassVar[str] = "It puts every text near others, even if none of them belongs to it."
    hub_types: ClassVar[tuple[str, ...]] = ("mrr", "recall_at_1", "recall_at_10")
    unit: ClassVar[str] = "pairs"
    explained: ClassVar[str] = (
        "For each row, all second texts of the set are ordered by their similarity to the first text. MRR is the mean "
        "of 1 / rank of the right one"
    )
    """A description of the estimates, for the report."""

    rows: int
    """Number of pairs."""
    texts: int
    """Number of different second texts."""
    loss: float
    """Mean loss, in batches of the training's size."""
    mrr: Estimate
    """Mean of 1 / rank of the right text."""
    recall_at_1: Estimate
    """Fraction of pairs whose text is the first."""
    recall_at_10: Estimate
    """Fraction of pairs whose text is among the first 10."""

    @property
    def purpose(self) -> str:
        return "embed texts, so that those that belong together are close"

    def columns(self) -> list[tuple[str, str]]:
        """Heading and cell of each estimate in the report."""
        return list(zip(self.estimates.headings, self.estimates.cells(), strict=True))

    def headline(self) -> str:
        return f"{count(self.rows)} {self.unit}, ranked among {count(self.texts)} texts: {self._cells()}"

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> RankJudge:
        return RankJudge()

    @classmethod
    def compared_types(cls) -> tuple[type[RankEstimates], type[RankLead]]:
        return RankEstimates, RankLead

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The pairs with the highest ranks, without those of rank 1."""
        ranks = predictions["prediction"].to_numpy()
        indices = np.argsort(-ranks, kind="stable")[: min(MAX_WORST_ROWS, int(np.sum(ranks > 1)))]
        lines = [(f"rank {count(int(ranks[index]))}", "", "rank 1") for index in indices]
        wrong = f"{count(int(np.sum(ranks > 1)))} of {count(len(ranks))} {set_name} pairs have another text closer"
        summary = f"{wrong} than the right one." if len(indices) == 0 else f"{wrong}. The worst {len(indices)}:"
        words = ("Second text found at", "expected at")
        return Worst("Which pairs are furthest apart", summary, indices, lines, words)


class TripletScores(RetrievalScores):
    """The scores of triplets, whose third text does not belong to the first."""

    unit: ClassVar[str] = "triplets"
    explained: ClassVar[str] = (
        f"{RetrievalScores.explained}; triplet accuracy is the fraction of triplets whose second text is closer to the "
        "first than the third"
    )
    stored_columns: ClassVar[tuple[str, ...]] = (*RetrievalScores.stored_columns, IS_CLOSER)

    triplet_accuracy: Estimate
    """Fraction of triplets whose right text is closer than the negative."""

    def columns(self) -> list[tuple[str, str]]:
        return [*super().columns(), ("Triplet accuracy", self.triplet_accuracy.in_words())]

    def headline(self) -> str:
        return f"{super().headline()}, triplet accuracy {self.triplet_accuracy.in_words()}"

    def as_metrics(self, set_name: str) -> dict[str, float]:
        return super().as_metrics(set_name) | {f"{set_name}_triplet_accuracy": self.triplet_accuracy.value}

    def measures(self) -> list[Measure]:
        return [*super().measures(), Measure("cosine_accuracy", "Triplet accuracy", self.triplet_accuracy.value)]


class SameClassScores(RetrievalScores):
    """How well an embedder finds another text of the class of each text of a set among all of them."""

    unit: ClassVar[str] = "rows"
    stored_columns: ClassVar[tuple[str, ...]] = (*RetrievalScores.stored_columns, CLASS)
    explained: ClassVar[str] = (
        "For each row, all other texts of the set are ordered by their similarity to its text. MRR is the mean of "
        "1 / rank of the nearest one of the same class. Rows that are alone in their class have none"
    )

    alone: int
    """Number of rows without another text of their class, which have no rank."""

    @property
    def purpose(self) -> str:
        return "embed texts, so that those of one class are close"

    def columns(self) -> list[tuple[str, str]]:
        return [("Alone", count(self.alone)), *super().columns()]

    def headline(self) -> str:
        left_out = f"; {count(self.alone)} without another text of their class are left out" if self.alone else ""
        return f"{super().headline()}{left_out}"

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The rows with the highest ranks, without those of rank 1."""
        ranks = predictions["prediction"].to_numpy()
        wrong = int(np.sum(ranks > 1))
        indices = np.argsort(-ranks, kind="stable")[: min(MAX_WORST_ROWS, wrong)]
        names = predictions[CLASS].take(pa.array(indices)).to_pylist()
        lines = [
            (f"rank {count(int(rank))}", "", name or "a class without training rows")
            for rank, name in zip(ranks[indices], names, strict=True)
        ]
        summary = (
            f"{count(wrong)} of {count(int(np.sum(ranks > 0)))} {set_name} rows have a text of another class closer "
            f"than all of their own.{f' The worst {len(indices)}:' if len(indices) else ''}"
        )
        words = ("Nearest text of its class at", "class")
        return Worst("Which texts are far from their class", summary, indices, lines, words)


def retrieval_scores(ranks: np.ndarray, texts: int, loss: float, closer: np.ndarray | None = None) -> RetrievalScores:
    """The scores of ranks int64 [n] among this many texts; of triplets with `closer`, bool [n]. Raises Diverged if the
    loss is not finite."""
    check_finite("the loss", loss, WHEN_SCORED)
    found = RankJudge().estimates(ranks, ranks)
    named = {name: getattr(found, name) for name in RankEstimates.model_fields}
    if closer is not None:
        return TripletScores(rows=len(ranks), texts=texts, loss=loss, triplet_accuracy=share(closer), **named)
    return RetrievalScores(rows=len(ranks), texts=texts, loss=loss, **named)


def same_class_scores(ranks: np.ndarray, texts: int, loss: float) -> SameClassScores:
    """The scores of ranks int64 [n], at least one of which is not 0, among this many texts. Raises Diverged if the loss
    is not finite."""
    check_finite("the loss", loss, WHEN_SCORED)
    found = RankJudge().estimates(ranks, ranks)
    named = {name: getattr(found, name) for name in RankEstimates.model_fields}
    ranked = int(np.sum(ranks > 0))
    return SameClassScores(rows=ranked, alone=len(ranks) - ranked, texts=texts, loss=loss, **named)
