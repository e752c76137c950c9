"""Each row has several numbers, each of which the network predicts as it predicts one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.survey import Survey, T, Translation, refuse_too_few
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.csv_injection import PREDICTION
from trainjob.data.read.numbers import listed_numbers
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.data.read.thousands import Thousands
from trainjob.errors import DataError, listed
from trainjob.evaluation.several_number_estimates import SeveralNumbersJudge, named_columns
from trainjob.formatting import plain_number
from trainjob.kinds.target import Guesses, Target
from trainjob.kinds.targets.number import REGULARIZATION, OneNumber
from trainjob.kinds.targets.several_numbers_reply import SeveralNumbersReply

if TYPE_CHECKING:
    from torch import Tensor, nn

    from trainjob.kinds.regressor import Regressor
    from trainjob.kinds.targets.several_numbers_objective import SeveralNumbersObjective

MAX_NUMBERS = 100
SHOWN_COLUMNS = 10


@dataclass
class SeveralNumberLabels:
    """Reads the numbers of each row in the first pass, where a part has listed them."""

    column: str
    """The column of these lists."""
    names: list[str]
    """The columns that they come from."""
    thousands: list[Thousands] = field(default_factory=list[Thousands])
    """What is known of each of these columns."""

    def __post_init__(self) -> None:
        self.thousands = self.thousands or [Thousands() for _ in self.names]

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are float64 [n, L]."""
        for name, thousands in zip(self.names, self.thousands, strict=True):
            if name in rows.table.column_names:
                thousands.look_at(rows, name)
        return rows, listed_numbers(rows, self.column)

    def merge(self, later: "SeveralNumberLabels") -> Translation:
        for own, others in zip(self.thousands, later.thousands, strict=True):
            own.merge(others)
        return lambda labels: labels

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], SeveralNumbers]":
        """Raises DataError if all labels of a column are equal, if two columns have the same labels, or if there are
        too few different rows to set some aside for validation."""
        labels, source = survey.labels, listed(dataset.train.all_uris)
        assert labels is not None
        if len(self.names) > MAX_NUMBERS:
            raise DataError(
                f"spec.dataset.labels names {len(self.names):,} columns of numbers; at most {MAX_NUMBERS} can be "
                "learned by one model"
            )
        columns: dict[bytes, str] = {}
        for name, own in zip(self.names, labels.T, strict=True):
            if own.min() == own.max():
                raise TooFewRows(
                    f'{source}: column "{name}" has the label {plain_number(own[0])} in every row, so there is '
                    "nothing to learn: leave it out of dataset.labels"
                )
            if (other := columns.setdefault(own.tobytes(), name)) != name:
                raise DataError(
                    f'{source}: columns "{other}" and "{name}" have the same label in every row: leave one of them out '
                    "of dataset.labels"
                )
        refuse_too_few(survey.hashes, dataset)
        return survey, SeveralNumbers(
            self.names, [OneNumber([], thousands=each.note() or "") for each in self.thousands]
        )


@dataclass(frozen=True)
class SeveralNumbers(Target):
    """Labels are finite numbers, [n, L]; the network has an output for each column, its standardized label."""

    names: list[str]
    """The columns, in the order of the outputs."""
    columns: list[OneNumber]
    """The columns of numbers, in the order of the outputs."""

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def output_names(self) -> list[str]:
        return self.names

    @property
    def mean(self) -> np.ndarray:
        """The mean of each column's training labels, float64 [L]."""
        return np.array([each.mean for each in self.columns])

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of each column's training labels, float64 [L]."""
        return np.array([each.std for each in self.columns])

    def sizes(self) -> dict[str, int]:
        return {"numbers": len(self.names)}

    def _named(self) -> list[tuple[str, OneNumber]]:
        return list(zip(self.names, self.columns, strict=True))

    def in_words(self) -> str:
        shown = "; ".join(f"{name} {each.range_in_words()}" for name, each in self._named()[:SHOWN_COLUMNS])
        more = f"; and {len(self.names) - SHOWN_COLUMNS} more" if len(self.names) > SHOWN_COLUMNS else ""
        return f"labels of the training rows: {shown}{more}"

    def completed(self, labels: np.ndarray) -> Self:
        columns = [each.completed(own) for each, own in zip(self.columns, labels.T, strict=True)]
        return replace(self, columns=columns)

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        return rows, listed_numbers(rows, column)

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """One for all rows: a row in a rare range of one column may be in a frequent range of another."""
        return np.zeros(rows, np.int64)

    def why_not_scored(self, labels: np.ndarray | None, metric: str | None = None) -> str | None:
        if labels is None or (labels != labels[:1]).any():
            return None
        return "all have the same labels, so R² and rank correlation are not defined for any column"

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return json.dumps(self.names).encode() + (b"" if labels is None else labels.tobytes())

    def profile(self) -> dict[str, Any]:
        facts: dict[str, float] = {"Numbers of a row": len(self.names)}
        for name, each in self._named()[:SHOWN_COLUMNS]:
            facts |= {f"{key}, {name}": value for key, value in each.profile()["label_range"].items()}
        return {"label_range": facts}

    def notes(self) -> list[str]:
        return [f'column "{name}": {note}' for name, each in self._named() for note in each.notes()]

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """float64 [n, L], each in its column's unit."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels

    def standardized(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers - self.mean) / self.std

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "SeveralNumbersObjective":
        from trainjob.kinds.targets.several_numbers_objective import SeveralNumbersObjective

        if spec is None:
            raise ValueError("a regressor's loss is in the spec")
        return SeveralNumbersObjective(cast("Regressor", spec.model.kind).loss, self)

    def numbers(self, outputs: np.ndarray) -> np.ndarray:
        """Converts outputs [n, L] to predictions in their columns' units, float64 [n, L]."""
        return outputs.astype(np.float64) * self.std + self.mean

    def answer(self, outputs: "Tensor", module: "nn.Module") -> pa.Table:
        """An object of each row's numbers by column."""
        return pa.table({PREDICTION: named_columns(self.numbers(outputs.cpu().numpy()), self.names)})

    @property
    def reply_type(self) -> type[SeveralNumbersReply]:
        return SeveralNumbersReply

    def replies(self, outputs: "Tensor", module: "nn.Module") -> list[SeveralNumbersReply]:
        numbers = self.numbers(outputs.cpu().numpy()).tolist()
        return [SeveralNumbersReply(prediction=dict(zip(self.names, row, strict=True))) for row in numbers]

    @property
    def judge(self) -> SeveralNumbersJudge:
        return SeveralNumbersJudge(self.names)

    def constant(self, rows: int) -> Guesses:
        """The mean of each column's training labels."""
        return Guesses(np.tile(self.mean, (rows, 1)))

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        """Ridge regression of each column."""
        from sklearn.linear_model import Ridge

        model = Ridge(alpha=REGULARIZATION).fit(features, self.standardized(labels))
        outputs = model.predict(held).reshape(-1, self.width)
        return Guesses(self.numbers(outputs), weights=(np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)))

    @property
    def tree_objective(self) -> dict[str, Any]:
        return self.columns[0].tree_objective

    def tree_labels(self, labels: np.ndarray) -> list[np.ndarray]:
        return list(self.standardized(labels).T)

    def tree_outputs(self, predicted: list[np.ndarray]) -> np.ndarray:
        return np.stack(predicted, axis=1)

    def boosted(self, outputs: np.ndarray) -> Guesses:
        return Guesses(self.numbers(outputs))

    def save(self) -> dict[str, Any]:
        return {"label_columns": {name: each.save() for name, each in self._named()}}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        columns: dict[str, Any] = state.pop("label_columns")
        return cls(list(columns), [OneNumber.load(each) for each in columns.values()])
