"""The objective of embedders that learn from pairs with scores: the cosine of a pair must equal its score.

It is sentence-transformers' CosineSimilarityLoss: the squared difference.
"""

from typing import TYPE_CHECKING

import pyarrow as pa
import torch
from torch import Tensor

from trainjob.evaluation.scores.similarity import AIM, similarity_scores
from trainjob.kinds.targets.number_objective import NumberTally

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.targets.scored_texts import ScoredTexts


class SimilarityObjective:
    """Minimizes this loss. Scores are the correlations of cosine and score."""

    unit: None = None

    def __init__(self, target: "ScoredTexts") -> None:
        self._target = target

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        return (cosines(answers) - self._target.aims(batch.labels).float()).square()

    def tally(self, device: torch.device) -> NumberTally:
        return NumberTally(lambda answers: cosines(answers).double(), self.losses, similarity_scores, device)

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        columns = {"label": batch.labels, "prediction": cosines(answers), AIM: self._target.aims(batch.labels)}
        return pa.table({"row": batch.rows, **{name: column.cpu().numpy() for name, column in columns.items()}})


def cosines(answers: Tensor) -> Tensor:
    """The cosines, float32 [n], of pairs of vectors of length 1, [n, 2, d]."""
    first, second = answers.float().unbind(1)
    return (first * second).sum(1)
