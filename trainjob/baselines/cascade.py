"""The cascade: the trained model answers the rows that it is sure of, and a language model answers the others. This
module applies it, and computes its scores and costs for each threshold."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from trainjob.api import Baselines
from trainjob.baselines.cheap import HeldOutPredictions
from trainjob.baselines.language_model.budget import price
from trainjob.baselines.language_model.classify import Sorter
from trainjob.baselines.rows import sample
from trainjob.data import Fitted
from trainjob.data.read.rows import Rows
from trainjob.errors import UserError
from trainjob.evaluation.paired import estimate_scores
from trainjob.runs.comparison import Cascade, CascadePoint
from trainjob.runs.files import FITTED, TRAINJOB
from trainjob.runs.folder import read_job
from trainjob.storage import Folder

STEPS = 10
"""The curve's thresholds are chosen so that the language model is asked about none, 1/STEPS, 2/STEPS … of the rows."""
DIGITS = 4


def is_sure(probabilities: np.ndarray, threshold: float) -> np.ndarray:
    """Whether the trained model answers a row, bool [n], given the probability of its prediction, float32 [n]."""
    return probabilities.astype(np.float64) >= threshold


def curve(
    baselines: Baselines | None,
    labels: np.ndarray,
    model: HeldOutPredictions,
    baseline: HeldOutPredictions,
    classes: int,
) -> Cascade | None:
    """Scores and costs by threshold, on the rows that the language model (`baseline`) predicted; `labels`, int64 [n],
    are theirs. None without a language model."""
    language_model = baselines.language_model if baselines else None
    tokens, probabilities = baseline.tokens, model.probabilities
    if language_model is None or tokens is None or probabilities is None:
        return None
    predicted, probability = model.predicted[baseline.row_indices], probabilities[baseline.row_indices]

    def point(threshold: float) -> CascadePoint:
        asked = ~is_sure(probability, threshold)
        input_tokens, output_tokens = tokens[asked].sum(axis=0).tolist()
        reached = estimate_scores(labels, np.where(asked, baseline.predicted, predicted), classes)
        return CascadePoint(
            threshold=threshold,
            asked=int(asked.sum()),
            tokens=input_tokens + output_tokens,
            cost=price(language_model, input_tokens, output_tokens),
            accuracy=reached.accuracy,
            f1=reached.f1,
        )

    return Cascade(rows=len(labels), points=[point(threshold) for threshold in _thresholds(probability)])


def _thresholds(probabilities: np.ndarray) -> list[float]:
    """Candidate thresholds from 0 to 1: quantiles of the probabilities, rounded so that users can type them."""
    inner = np.quantile(probabilities.astype(np.float64), np.arange(1, STEPS) / STEPS, method="higher")
    rounded = np.ceil(inner * 10**DIGITS) / 10**DIGITS
    return np.unique(np.clip([0.0, *rounded, 1.0], 0.0, 1.0)).tolist()


@dataclass(frozen=True)
class CascadeAnswers:
    """The classes of some rows."""

    predicted: np.ndarray
    """Class indices, int64 [n]; the number of classes if the language model's answer names no class."""
    asked: np.ndarray
    """Whether the language model answered, bool [n]."""


class LanguageModelCascade:
    """The cascade of a run's model and the language model that its TrainJob names."""

    def __init__(self, run: Folder, threshold: float) -> None:
        """Raises UserError if there is no language model to ask, or if the folder is not a run's."""
        job = read_job(run)
        model = job.spec.baselines.language_model if job.spec.baselines else None
        if model is None:
            raise UserError(
                f"{run.uri}: its TrainJob has no language model to ask: add spec.baselines.languageModel to "
                f"{run.uri}/{TRAINJOB}"
            )
        fitted = Fitted.load(run / FITTED)
        self.threshold, self._input = threshold, fitted.preprocessor.input
        self._classes = fitted.preprocessor.target.classes
        train = partial(sample, job.spec, fitted, "train")
        self._sorter = Sorter(model, run, self._classes, train, job.spec.training.seed)
        self._rows = self._answered = self._unknown = self._left = 0

    def decide(self, rows: Rows, probabilities: np.ndarray) -> CascadeAnswers:
        """The answers of both models to rows with the trained model's `probabilities`, float32 [n, C].

        The trained model answers rows beyond the budget. Raises UserError if the server refuses or keeps failing.
        """
        predicted = probabilities.argmax(axis=1)
        unsure = np.flatnonzero(~is_sure(probabilities.max(axis=1), self.threshold))
        texts = list(self._input.plain(rows.take(unsure)))
        answers = zip(unsure, self._sorter.answers(texts), strict=True)
        found = [(row_index, answer) for row_index, answer in answers if answer is not None]
        asked = np.zeros(len(predicted), bool)
        asked[np.array([row_index for row_index, _ in found], np.int64)] = True
        predicted[asked] = self._sorter.class_numbers([answer for _, answer in found])
        self._count(predicted, len(found), len(unsure))
        return CascadeAnswers(predicted, asked)

    def notes(self) -> list[str]:
        """Remarks to show at the end."""
        budget, model = self._sorter.asker.budget, self._sorter.asker.model
        money = f", which cost {budget.cost:.4f}" if model.input_price or model.output_price else ""
        answered = f"{self._answered:,} of {self._rows:,} rows answered by {model.model}"
        notes = [f"{answered}: {budget.requests:,} requests now{money}"]
        if self._unknown:
            notes.append(f"{self._unknown:,} of its answers name none of the classes: their predictions are empty")
        if self._left:
            notes.append(f"{self._left:,} rows were left to the trained model, as {budget.reached} was reached")
        return notes

    def _count(self, predicted: np.ndarray, answered: int, unsure: int) -> None:
        self._rows += len(predicted)
        self._answered += answered
        self._unknown += int(np.sum(predicted == len(self._classes)))
        self._left += unsure - answered
