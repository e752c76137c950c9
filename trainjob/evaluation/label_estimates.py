"""Confidence intervals of the scores of a model that gives each row any number of labels, and of its lead over another
model on the same rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import Estimate, Lead, ScoreEstimates, bootstrapped, sorted_rows, with_intervals
from trainjob.evaluation.paired import MIN_ROWS, holding_zero


class LabelEstimates(ScoreEstimates):
    """Estimates of such a model's scores. A label's F1 is 0 where no row has it, in truth or by prediction."""

    main_field: ClassVar[str] = "f1"

    f1: Estimate
    """F1, the mean over labels."""
    micro_f1: Estimate
    """F1 of all labels of all rows together."""
    accuracy: Estimate
    """Fraction of rows all of whose labels are right."""

    @property
    def headings(self) -> tuple[str, ...]:
        return ("F1, macro average", "F1, micro average", "All labels right")


class LabelLead(Lead):
    """How much better the first model is than the second on the same rows. The intervals include 0 if the two models
    differ on fewer than MIN_ROWS rows."""

    main_field: ClassVar[str] = "f1"

    f1: Estimate
    """Difference in F1, the mean over labels."""
    micro_f1: Estimate
    """Difference in F1 of all labels of all rows together."""
    accuracy: Estimate
    """Difference in the fraction of rows all of whose labels are right."""


@dataclass(frozen=True)
class LabelJudge:
    """Compares the labels of rows, 1 or true where a row has the label, [n, L]."""

    names: list[str]

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        """bool [n, L], of lists of names."""
        lists, numbers = column.combine_chunks(), {name: number for number, name in enumerate(self.names)}
        found = np.zeros((len(lists), len(self.names)), bool)
        rows = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
        found[rows, [numbers[name] for name in lists.flatten().to_pylist()]] = True
        return found

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": name_lists(predicted, self.names)})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> LabelEstimates:
        terms = _terms(*sorted_rows(labels, predicted))
        return LabelEstimates(
            **with_intervals(_scores(terms.sum(axis=1)), _scores(bootstrapped(terms)), ("f1", "micro_f1", "accuracy"))
        )

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> LabelLead:
        terms = [_terms(labels, each) for each in (first, second)]
        one, other = (_scores(each.sum(axis=1)) for each in terms)
        drawn = bootstrapped(np.concatenate(terms))
        one_drawn, other_drawn = _scores(drawn[: len(terms[0])]), _scores(drawn[len(terms[0]) :])
        found = with_intervals(one - other, one_drawn - other_drawn, ("f1", "micro_f1", "accuracy"))
        if (first != second).any(axis=1).sum() < MIN_ROWS:
            found = {name: holding_zero(estimate) for name, estimate in found.items()}
        return LabelLead(**found)


def name_lists(has_label: np.ndarray, names: Sequence[str]) -> pa.ListArray:
    """The names of each row's labels, from bool [n, L]."""
    offsets = np.concatenate([[0], np.cumsum(has_label.sum(axis=1))]).astype(np.int32)
    columns = pa.array(np.nonzero(has_label)[1], pa.int64())
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names, pa.string()).take(columns))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The ratios, 0 where the denominator is 0."""
    numerator = np.asarray(numerator, np.float64)
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)


def _terms(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The terms that are summed over rows, float64 [2 L + 2, n]: 1, whether all labels are right, and for each label
    whether it is rightly predicted, then the number of times that it is there, in truth or by prediction."""
    labels, predicted = labels.astype(bool), predicted.astype(bool)
    all_right = (labels == predicted).all(axis=1)
    right, there = labels & predicted, labels.astype(np.int8) + predicted
    return np.concatenate([np.ones((1, len(labels))), all_right[None], right.T, there.T])


def _scores(sums: np.ndarray) -> np.ndarray:
    """Macro F1, micro F1 and the share of rows that are all right, [3, ...], of such sums [2 L + 2, ...]."""
    rows, all_right, right, there = sums[0], sums[1], *np.split(sums[2:], 2)
    micro = ratio(2 * right.sum(axis=0), there.sum(axis=0))
    return np.stack([ratio(2 * right, there).mean(axis=0), micro, all_right / rows])
