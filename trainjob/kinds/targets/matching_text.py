"""The target of a text is another text that belongs to it: their vectors must be close. A third text, a hard negative,
does not belong to the first: their vectors must be further apart.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.survey import Survey, T, Translation
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import UserError, listed
from trainjob.evaluation.ranks import HASH, RankJudge, have_others, is_closer, pair_hashes, ranks_of
from trainjob.evaluation.scores.retrieval import IS_CLOSER
from trainjob.kinds.target import Guesses
from trainjob.kinds.targets.vectors import VECTORS, Vectors, rows_with_texts, vector_matrix

if TYPE_CHECKING:
    from torch import nn

    from trainjob.kinds.targets.matching_objective import MatchingObjective
    from trainjob.kinds.text_embedder.spec import TextEmbedder


@dataclass
class PairLabels:
    """Reads pairs and triplets in the first pass."""

    text: list[str]
    pair: list[str]
    negative: list[str]
    width: int

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        return _read(rows, self.text, self.pair, self.negative, on_bad)

    def merge(self, later: "PairLabels") -> Translation:
        return lambda labels: labels

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], MatchingText]":
        """Raises DataError where no second text can be told from another one."""
        target = MatchingText(self.width, self.text, self.pair, self.negative)
        if not self.negative and (problem := target.why_not_scored(survey.labels)):
            raise TooFewRows(f"{listed(dataset.train.all_uris)}: these rows {problem}")
        return survey, target


@dataclass(frozen=True)
class MatchingText(Vectors):
    """The label of a pair is an int64: above its lower 32 bits a hash of the first text, in them one of the second; the
    former is cut to 31 bits. The label of a triplet is these hashes and that of its third text, float64 [3], which
    holds each of them exactly.

    Equal hashes are equal texts: rows that share one are not used against each other.
    """

    text: list[str]
    pair: list[str]
    negative: list[str] = field(default_factory=list[str])

    def in_words(self) -> str:
        return f"{'triplets' if self.negative else 'pairs'} of texts; vectors have {self.dimensions} dimensions"

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The rows with all their texts, and their labels, int64 [n] or float64 [n, 3]."""
        return _read(rows, self.text, self.pair, self.negative, on_bad)

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """One for all rows."""
        return np.zeros(rows, np.int64)

    def why_not_scored(self, labels: np.ndarray | None, metric: str | None = None) -> str | None:
        if labels is None or have_others(labels):
            return None
        return (
            f"have no text in {listed(self.pair)} that would be a wrong match for any of them; an embedder learns to "
            "tell the text of a row from those of others, so at least two different ones are needed"
        )

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return b"" if labels is None else labels.tobytes()

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """int64 [n] or float64 [n, 3]."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "MatchingObjective":
        from trainjob.kinds.targets.matching_objective import MatchingObjective

        if spec is None or spec.training.batch_size is None:
            raise ValueError("an embedder's loss is in the spec")
        if spec.training.batch_size < 2:
            raise UserError("spec.training.batchSize: an embedder learns from the other pairs of a batch: at least 2")
        return MatchingObjective(cast("TextEmbedder", spec.model.kind).scale, spec.training.batch_size)

    @property
    def judge(self) -> RankJudge:
        return RankJudge()

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        """Ranks by the cosine of the features of both texts, which are the first two quarters, of length 1."""
        assert held_labels is not None
        width = held.shape[1] // 4
        first, second = held[:, :width], held[:, width : 2 * width]
        return Guesses(
            ranks_of(pair_hashes(held_labels), lambda rows, texts: (first[rows] @ second[texts].T).toarray())
        )

    def decoded(self, predictions: pa.Table) -> pa.Table:
        """The rank of each row's second text among all and, of triplets, whether it is closer than the third text."""
        found = [vector_matrix(predictions[name]) for name in VECTORS if name in predictions.column_names]
        first, second, *negative = found
        labels = pair_hashes(self.judge.values(predictions["label"]))
        ranks = ranks_of(labels, lambda rows, texts: first[rows] @ second[texts].T)
        columns: dict[str, Any] = {"row": predictions["row"], "label": predictions["label"], "prediction": ranks}
        if negative:
            columns[IS_CLOSER] = is_closer(first, second, negative[0])
        return pa.table(columns)

    def save(self) -> dict[str, Any]:
        of = {"text": self.text, "pair": self.pair, "negative": self.negative, "dimensions": self.dimensions}
        return {"of": of}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(**state.pop("of"))


def _read(
    rows: Rows, text: Sequence[str], pair: Sequence[str], negative: Sequence[str], on_bad: OnBadRow
) -> tuple[Rows, np.ndarray]:
    rows, texts = rows_with_texts(rows, [names for names in (text, pair, negative) if names], on_bad)
    first, second, *third = (np.array([zlib.crc32(each.encode()) for each in column], np.int64) for column in texts)
    first &= HASH
    if third:
        return rows, np.stack([first, second, *third], axis=1).astype(np.float64)
    return rows, (first << 32) | second
