"""Each row has a number, which the network predicts in standard deviations from the mean of the training rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.split import distinct_rows
from trainjob.data.first_pass.survey import Survey, T, Translation, fewest_rows, refuse_too_few
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.csv_injection import PREDICTION
from trainjob.data.read.numbers import read_numbers
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.data.read.thousands import Thousands
from trainjob.errors import listed
from trainjob.evaluation.number_estimates import NumberJudge
from trainjob.formatting import plain_number
from trainjob.kinds.regressor import NEED_DIFFERENT_LABELS
from trainjob.kinds.target import Guesses, Target
from trainjob.kinds.targets.number_reply import Number as NumberReply

if TYPE_CHECKING:
    from torch import Tensor, nn

    from trainjob.kinds.regressor import Regressor
    from trainjob.kinds.targets.number_objective import NumberObjective

MAX_STRATA, ROWS_OF_STRATUM = 10, 20
"""The most ranges of labels, and the fewest rows of each: validation rows are set aside within ranges of about equally
many rows."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
FAR = 10
"""A label is an outlier if it is this many interquartile ranges below the first quartile or above the third."""
_SAVED = ("edges", "mean", "std", "quantiles")
REGULARIZATION = 1.0
"""The strength of the L2 penalty of ridge regression, for standardized labels."""


@dataclass
class NumberLabels:
    """Reads numbers in the first pass."""

    column: str
    thousands: Thousands = field(default_factory=Thousands)

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are float64 [n]."""
        usable, labels = read_numbers(rows, self.column, on_bad)
        self.thousands.look_at(usable, self.column)
        return usable, labels

    def merge(self, later: "NumberLabels") -> Translation:
        self.thousands.merge(later.thousands)
        return lambda labels: labels

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], OneNumber]":
        """Raises DataError if all labels are equal, or if there are too few different rows to set some aside for
        validation."""
        labels = survey.labels
        assert labels is not None
        source = listed(dataset.train.all_uris)
        if labels.min() == labels.max():
            where = f' in column "{dataset.label}"' if dataset.label else ""
            raise TooFewRows(
                f"{source}: every row has the label {plain_number(labels[0])}{where}; at least two different ones are "
                "needed"
            )
        refuse_too_few(survey.hashes, dataset)
        strata = int(np.clip(len(labels) // ROWS_OF_STRATUM, 1, MAX_STRATA))
        edges = np.unique(np.quantile(labels, np.arange(1, strata) / strata)) if strata > 1 else np.empty(0)
        name, note = dataset.label or "", self.thousands.note()
        thousands = f'column "{name or self.column}": {note}' if note else ""
        target = OneNumber(edges.tolist(), name=name, thousands=thousands)
        distinct = distinct_rows(survey.hashes, target.strata(labels, len(labels)), len(target.edges) + 1)
        return survey, replace(target, edges=[]) if distinct.max() < fewest_rows(dataset) else target


@dataclass(frozen=True)
class OneNumber(Target):
    """Labels are finite numbers; the network has one output, the standardized label."""

    edges: list[float]
    """The edges of the strata, ascending: the stratum of a label is the number of edges up to it."""
    mean: float = 0.0
    std: float = 1.0
    """Mean and standard deviation of the training labels."""
    quantiles: list[float] = field(default_factory=list[float])
    """The training labels' QUANTILES."""
    name: str = ""
    """The column of the labels; empty where they have none, and for one of several numbers."""
    outliers: int = field(default=0, compare=False)
    """Training labels that lie far from the others; not saved."""
    thousands: str = field(default="", compare=False)
    """A note on labels with points that seem to separate thousands; not saved."""

    @property
    def width(self) -> int:
        return 1

    @property
    def label_name(self) -> str:
        return self.name

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs in a network's config.json; none for a single one."""
        return []

    def in_words(self) -> str:
        return f"labels of the training rows: {self.range_in_words()}"

    def range_in_words(self) -> str:
        least, _, median, _, most = self.quantiles
        low, middle, high = (plain_number(label) for label in (least, median, most))
        return f"from {low} to {high}, median {middle}, mean {plain_number(self.mean)}"

    def completed(self, labels: np.ndarray) -> Self:
        """Sets the mean and the standard deviation for standardization, from labels float64 [n]."""
        quantiles = np.quantile(labels, QUANTILES)
        reach = FAR * (quantiles[3] - quantiles[1])
        outliers = np.sum((labels < quantiles[1] - reach) | (labels > quantiles[3] + reach)) if reach else 0
        return replace(
            self,
            mean=float(labels.mean()),
            std=float(labels.std()) or 1.0,
            quantiles=quantiles.tolist(),
            outliers=int(outliers),
        )

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        return read_numbers(rows, column, on_bad)

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """Ranges of labels."""
        return np.zeros(rows, np.int64) if labels is None else np.searchsorted(self.edges, labels, side="right")

    def why_not_scored(self, labels: np.ndarray | None, metric: str | None = None) -> str | None:
        if labels is None or metric not in NEED_DIFFERENT_LABELS or len(np.unique(labels)) > 1:
            return None
        return f"all have the label {plain_number(labels[0], 9)}, so checkpoints cannot be chosen by {metric}"

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return b"" if labels is None else labels.tobytes()

    def profile(self) -> dict[str, Any]:
        least, _, median, _, most = self.quantiles
        return {"label_range": {"Smallest label": least, "Median label": median, "Largest label": most}}

    def notes(self) -> list[str]:
        notes = [self.thousands] if self.thousands else []
        if not self.outliers:
            return notes
        low, high = (plain_number(self.quantiles[end]) for end in (0, -1))
        count = "1 training row has a label" if self.outliers == 1 else f"{self.outliers:,} training rows have labels"
        return [
            *notes,
            f"{count} far from all others (they range from {low} to {high}): if such a number stands for a missing "
            "label, drop its rows; loss: {huber: {}} lets outliers count less",
        ]

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """float64 [n], in the label's own unit."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels

    def standardized(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers - self.mean) / self.std

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "NumberObjective":
        from trainjob.kinds.targets.number_objective import NumberObjective

        if spec is None:
            raise ValueError("a regressor's loss is in the spec")
        return NumberObjective(cast("Regressor", spec.model.kind).loss, self)

    def numbers(self, outputs: "Tensor") -> "Tensor":
        """Converts outputs [n, 1] to predictions in the label's own unit, float64 [n]."""
        return outputs.squeeze(1).double() * self.std + self.mean

    def answer(self, outputs: "Tensor", module: "nn.Module") -> pa.Table:
        return pa.table({PREDICTION: self.numbers(outputs).cpu().numpy()})

    @property
    def reply_type(self) -> type[NumberReply]:
        return NumberReply

    def replies(self, outputs: "Tensor", module: "nn.Module") -> list[NumberReply]:
        return [NumberReply(prediction=number) for number in self.numbers(outputs).tolist()]

    @property
    def judge(self) -> NumberJudge:
        return NumberJudge()

    def constant(self, rows: int) -> Guesses:
        """The mean of the training labels."""
        return Guesses(np.full(rows, self.mean))

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        """Ridge regression."""
        from sklearn.linear_model import Ridge

        model = Ridge(alpha=REGULARIZATION).fit(features, self.standardized(labels))
        weights = (model.coef_[:, None], np.atleast_1d(model.intercept_))
        return Guesses(model.predict(held) * self.std + self.mean, weights=weights)

    @property
    def tree_objective(self) -> dict[str, Any]:
        return {"objective": "regression"}

    def tree_labels(self, labels: np.ndarray) -> list[np.ndarray]:
        return [self.standardized(labels)]

    def tree_outputs(self, predicted: list[np.ndarray]) -> np.ndarray:
        return predicted[0][:, None]

    def boosted(self, outputs: np.ndarray) -> Guesses:
        return Guesses(outputs[:, 0] * self.std + self.mean)

    def save(self) -> dict[str, Any]:
        return {"label_name": self.name, **{"label_" + name: getattr(self, name) for name in _SAVED}}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json; earlier versions wrote them without `label_`, and
        without the name."""
        prefix = "label_" if "label_edges" in state else ""
        return cls(**{name: state.pop(prefix + name) for name in _SAVED}, name=state.pop("label_name", ""))
