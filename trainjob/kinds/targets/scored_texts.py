"""The target of a pair of texts is a score, such as their similarity, which the cosine of their vectors follows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.survey import Survey, T, Translation
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.evaluation.similarity import SimilarityJudge
from trainjob.kinds.target import Guesses
from trainjob.kinds.targets.number import NumberLabels, OneNumber
from trainjob.kinds.targets.vectors import Vectors, rows_with_texts

if TYPE_CHECKING:
    from torch import nn

    from trainjob.kinds.targets.similarity_objective import SimilarityObjective


@dataclass
class ScoreLabels:
    """Reads pairs of texts and their scores in the first pass."""

    text: list[str]
    pair: list[str]
    width: int
    scores: NumberLabels

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are float64 [n]."""
        rows, _ = rows_with_texts(rows, (self.text, self.pair), on_bad)
        return self.scores.read(rows, on_bad)

    def merge(self, later: "ScoreLabels") -> Translation:
        return self.scores.merge(later.scores)

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], ScoredTexts]":
        """Raises DataError if all scores are equal, or if there are too few different pairs."""
        survey, scores = self.scores.fit(survey, dataset, bad)
        return survey, ScoredTexts(self.width, self.text, self.pair, scores)


@dataclass(frozen=True)
class ScoredTexts(Vectors):
    """Labels are scores, float64 [n]. The smallest score of the training rows corresponds to a cosine of 0, the largest
    to a cosine of 1."""

    text: list[str]
    pair: list[str]
    scores: OneNumber

    def in_words(self) -> str:
        low, *_, high = self.scores.quantiles
        return (
            f"pairs of texts with scores from {low:g}, learned as a cosine of 0, to {high:g}, learned as a cosine of "
            f"1; vectors have {self.dimensions} dimensions"
        )

    def completed(self, labels: np.ndarray) -> Self:
        """Takes the range from labels float64 [n]. Raises DataError where they are equal."""
        if labels.min() == labels.max():
            raise TooFewRows(
                f"all training rows have the score {labels[0]:g}, once others are set aside for validation: add rows, "
                "or give dataset.validation.uri"
            )
        return replace(self, scores=self.scores.completed(labels))

    def aims(self, labels: Any) -> Any:
        """The cosines that scores [n], an array or a tensor, correspond to."""
        low, *_, high = self.scores.quantiles
        return (labels - low) / (high - low)

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        rows, _ = rows_with_texts(rows, (self.text, self.pair), on_bad)
        return self.scores.read(rows, column, on_bad)

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        return self.scores.strata(labels, rows)

    def why_not_scored(self, labels: np.ndarray | None, metric: str | None = None) -> str | None:
        if labels is None or len(np.unique(labels)) > 1:
            return None
        return f"all have the score {labels[0]:g}, so its correlation with the cosines is not defined"

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return self.scores.label_bytes(labels, rows)

    def profile(self) -> dict[str, Any]:
        return self.scores.profile()

    def notes(self) -> list[str]:
        notes = [self.scores.thousands] if self.scores.thousands else []
        if not self.scores.outliers:
            return notes
        count = self.scores.outliers
        low, *_, high = self.scores.quantiles
        rows = "1 training row has a score" if count == 1 else f"{count:,} training rows have scores"
        return [
            *notes,
            f"{rows} far from all others (they range from {low:g} to {high:g}), and this range scales all scores: if "
            "such a number stands for a missing score, drop its rows",
        ]

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.scores.labels(examples, inputs)

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "SimilarityObjective":
        from trainjob.kinds.targets.similarity_objective import SimilarityObjective

        return SimilarityObjective(self)

    @property
    def judge(self) -> SimilarityJudge:
        return SimilarityJudge()

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        """The cosine of both texts' features: the third quarter are their products, and each text's have length 1."""
        width = held.shape[1] // 4
        return Guesses(np.asarray(held[:, 2 * width : 3 * width].sum(axis=1), np.float64).ravel())

    def save(self) -> dict[str, Any]:
        of = {"dimensions": self.dimensions, "text": self.text, "pair": self.pair}
        return {"scored": of, **self.scores.save()}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(**state.pop("scored"), scores=OneNumber.load(state))
