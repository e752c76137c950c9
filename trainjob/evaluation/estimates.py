"""Scores with their intervals, and whether one model is better than another on the same rows, for any kind of answer.

Intervals hold 95% of SAMPLES bootstrap samples of the rows.
"""

from functools import lru_cache
from typing import ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa

from trainjob.api import StrictModel
from trainjob.errors import DataError
from trainjob.formatting import readable, rounded, title

SAMPLES = 1000
GROUPS = 1000
UNDEFINED = "not defined: all labels are equal"
"""The cell of a score that needs labels that differ."""


class Estimate(StrictModel):
    """A value and its 95% interval."""

    value: float
    """The value on all rows, without resampling."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

    def in_words(self, sign: str = "") -> str:
        """The value and, in brackets, its interval, with `sign` "+" also of numbers above 0; see `rounded`."""
        value, low, high = rounded((self.value, self.low, self.high), sign)
        return f"{value} [{low}, {high}]"


class Compared(StrictModel):
    """Estimates by score. One of the scores is used to compare models."""

    main_field: ClassVar[str]
    """The field of the score that models are compared by."""

    @property
    def main(self) -> Estimate:
        """The estimate of the score that models are compared by."""
        return getattr(self, self.main_field)


class ScoreEstimates(Compared):
    """Estimates of the scores of a model or a baseline; each field of a subclass is an `Estimate`, or None
    where it is not defined."""

    errors: ClassVar[tuple[str, ...]] = ()
    """The scores that are in the unit of the label."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of the scores, in the order of the fields."""
        return tuple(map(title, type(self).model_fields))

    @property
    def main_name(self) -> str:
        """The name of the score that models are compared by."""
        return readable(self.main_field)

    def cells(self) -> tuple[str, ...]:
        """Each score in words."""
        found: list[Estimate | None] = [getattr(self, name) for name in type(self).model_fields]
        return tuple(UNDEFINED if each is None else each.in_words() for each in found)


class Lead(Compared):
    """How much better the first model is than the second on the same rows. Differences are positive where the first is
    better."""

    @property
    def verdict(self) -> "LeadVerdict":
        """The verdict on the first model."""
        return verdict_of(self.main)


class Judge(Protocol):
    """Compares the predictions of models with the labels of the same rows. Both are arrays [n, ...]."""

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        """Labels or predictions in a column of a file in a run's `predictions/`."""
        ...

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        """The content of such a file: the column `row`, int64 [n], `prediction` and, where given, others."""
        ...

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> ScoreEstimates: ...

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> Lead: ...


LeadVerdict = Literal["better", "worse", "no clear difference"]


def verdict_of(difference: Estimate) -> LeadVerdict:
    """The verdict on the first of two models: a difference is clear if its interval does not contain 0."""
    if difference.low <= 0 <= difference.high:
        return "no clear difference"
    return "better" if difference.low > 0 else "worse"


def sorted_rows(*columns: np.ndarray) -> list[np.ndarray]:
    """The columns, each [n] or [n, k], with their rows sorted by their bytes: estimates then do not depend on the order
    in which rows were scored. Two models are compared on rows in one order, without this."""
    rows = np.ascontiguousarray(np.concatenate([column.reshape(len(column), -1) for column in columns], axis=1))
    order = np.argsort(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel(), kind="stable")
    return [column[order] for column in columns]


def bootstrapped(terms: np.ndarray) -> np.ndarray:
    """The sums of terms of rows [k, n] in each bootstrap sample, [k, SAMPLES].

    Groups of rows are drawn: of up to GROUPS rows each is its own group, more rows are divided at random. So a sample
    costs the same for any number of rows. The samples of equally many rows are the same.
    """
    order, counts = _drawn(terms.shape[1])
    if order is not None:
        starts = np.linspace(0, len(order), GROUPS, endpoint=False).astype(np.int64)
        terms = np.add.reduceat(terms[:, order], starts, axis=1)
    return terms @ counts


@lru_cache(maxsize=1)
def _drawn(rows: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The random order in which `rows` rows are divided into groups, None for few rows, and how often each sample has
    each group, float64 [groups, SAMPLES]."""
    random = np.random.default_rng(0)
    order = random.permutation(rows) if rows > GROUPS else None
    groups = min(rows, GROUPS)
    return order, random.multinomial(groups, np.full(groups, 1 / groups), SAMPLES).T.astype(np.float64)


def with_intervals(values: np.ndarray, samples: np.ndarray, names: tuple[str, ...]) -> dict[str, Estimate]:
    """The estimates by name, of values [m] and those of the bootstrap samples [m, SAMPLES], without the samples in
    which a value is not defined, NaN. Raises DataError where a value itself is not."""
    if np.isnan(values).any():
        raise DataError("a score is not defined on these rows: all labels are equal, or a prediction is not finite")
    low, high = np.nanquantile(samples, [0.025, 0.975], axis=1)
    return {
        name: Estimate(value=value, low=min(value, bottom), high=max(value, top))
        for name, value, bottom, top in zip(names, values.tolist(), low.tolist(), high.tolist(), strict=True)
    }


def where_defined(values: np.ndarray, samples: np.ndarray, names: tuple[str, ...]) -> dict[str, Estimate | None]:
    """The same estimates; None for a value that is not defined."""
    found: dict[str, Estimate | None] = dict.fromkeys(names)
    for index, name in enumerate(names):
        if not np.isnan(values[index]):
            found |= with_intervals(values[index : index + 1], samples[index : index + 1], (name,))
    return found
