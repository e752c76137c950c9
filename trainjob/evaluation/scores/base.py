"""The interface of all scores: reports, cards and commands show scores without knowing which kind they are.

`Facts.scores` of a kind of model names its scores. A new kind of scores is a module here and a template beside it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import TypeAdapter

from trainjob.api import StrictModel
from trainjob.errors import Diverged
from trainjob.formatting import MISSING, count, score
from trainjob.kinds.facts import Facts

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from trainjob.evaluation.estimates import Judge, Lead, ScoreEstimates

SECTIONS = Path(__file__).parent
"""The folder with the templates of the report's sections."""
Fields = TypeVar("Fields", bound=StrictModel)
_SETS = TypeAdapter(dict[str, dict[str, Any] | None])
WHEN_SCORED = "when the model is scored"


@dataclass(frozen=True)
class Measure:
    """One number of the scores, in the model's card and its metadata."""

    hub_type: str
    """The measure's name on the Hugging Face hub."""
    name: str
    value: float


@dataclass(frozen=True)
class Table:
    """A table as text; the first column holds names, the others numbers."""

    headings: tuple[str, ...]
    lines: list[tuple[str, ...]]
    title: str = ""


@dataclass(frozen=True)
class Worst:
    """The rows of a set whose predictions are worst, for the report."""

    title: str
    summary: str
    """A sentence."""
    indices: "np.ndarray"
    """The rows' indices in the predictions, int64 [m], the worst first."""
    lines: list[tuple[str, str, str]]
    """For each row: its prediction, a remark on it or "", and its label."""
    words: tuple[str, str] = ("Predicted", "labeled")
    """The words before the prediction and before the label."""


class Scores(StrictModel, ABC):
    """How well a model does on a set of rows."""

    section: ClassVar[str]
    """The template of the report's section, a file in this folder. Its variable `evaluation` holds the scores by
    set."""
    caution: ClassVar[str]
    """A sentence of the model's card on the limits of its answers."""

    loss: float

    stored_columns: ClassVar[tuple[str, ...]] = ("row", "label", "prediction")
    """The columns of the stored predictions that all versions of trainjob write."""

    @property
    def classes(self) -> list[str]:
        """The classes in the order of the model's outputs; empty if it predicts no classes."""
        return []

    @property
    @abstractmethod
    def purpose(self) -> str:
        """The task of the model, as a verb phrase that follows "to"."""

    @abstractmethod
    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Metrics by name, such as `validation_loss` for the set `validation`."""

    @abstractmethod
    def size(self) -> tuple[str, int]:
        """The unit that the scores are averaged over, and the number of units, such as ("rows", 1200)."""

    @abstractmethod
    def measures(self) -> list[Measure]:
        """The numbers in the model's card."""

    @abstractmethod
    def in_brief(self) -> str:
        """One line at the end of a run."""

    @abstractmethod
    def headline(self) -> str:
        """The first line of `trainjob evaluate`."""

    def table(self) -> Table | None:
        """The table below the headline."""
        return None

    def excerpt(self, set_name: str) -> Table | None:
        """A table in the model's card, below the measures: these scores, of the set `set_name`, in detail."""
        return None

    @abstractmethod
    def tiles(self) -> list[tuple[str, str]]:
        """Name and value of the numbers at the head of the report."""

    def compared(self, lead: "Lead | None") -> dict[str, str]:
        """Lines of `trainjob compare`. `lead` is the lead over the first run, where both predict the same rows."""
        estimates = self.estimates
        assert estimates is not None, "scores without estimates have lines of their own"
        unit, number = self.size()
        return {
            unit.capitalize(): count(number),
            **dict(zip(estimates.headings, estimates.cells(), strict=True)),
            f"Lead over the first in {estimates.main_name}": lead.main.in_words("+") if lead else MISSING,
            "Verdict": lead.verdict if lead else MISSING,
            "Loss": score(self.loss),
        }

    def missing_classes(self) -> list[str]:
        """The classes or labels that no row has. They count as 0 in macro averages."""
        return []

    @property
    def estimates(self) -> "ScoreEstimates | None":
        """The scores with their bootstrap intervals; None if they have none."""
        return None

    @classmethod
    def judge_of(cls, columns: "Sequence[pa.ChunkedArray]") -> "Judge | None":
        """Compares the labels and predictions in these columns of files in `predictions/`. None where such models keep
        no predictions."""
        return None

    @classmethod
    def worst(cls, predictions: "pa.Table", set_name: str) -> Worst:
        """The worst of the stored predictions for the rows of a set. Raises ValueError where none are stored."""
        raise ValueError(f"{cls.__name__} keep no predictions")

    @classmethod
    def compared_types(cls) -> "tuple[type[ScoreEstimates], type[Lead]]":
        """The types of estimates and leads of such models in a run's comparison with baselines. Raises ValueError where
        they have no baselines."""
        raise ValueError(f"{cls.__name__} have no baselines")


def scores_types(facts: Facts) -> list[type[Scores]]:
    """The scores of a kind of model. Raises ValueError for a kind that trainjob does not score."""
    if not facts.scores:
        raise ValueError(f"a {facts.noun} has no scores")
    parts = (name.partition(":") for name in facts.scores)
    return [getattr(import_module(module), name) for module, _, name in parts]


def scores_type(facts: Facts, predictions: "pa.Table") -> type[Scores]:
    """The class of scores of a model of this kind whose stored predictions have these columns."""
    columns, found = set(predictions.column_names), scores_types(facts)
    there = [each for each in found if set(each.stored_columns) <= columns]
    return max(there, key=lambda each: len(each.stored_columns), default=found[0])


def best_matching_type(types: Sequence[type[Fields]], values: Mapping[str, Any]) -> type[Fields]:
    """The type with the most required fields present; of several, the first one."""

    def found(each: type[Fields]) -> int:
        required = [name for name, field in each.model_fields.items() if field.is_required()]
        return sum(each.in_yaml(name) in values for name in required)

    return max(types, key=found)


def parse_scores(facts: Facts, values: Mapping[str, Any]) -> Scores:
    """The scores of a set, from JSON. Raises ValueError for those of another kind of model."""
    return best_matching_type(scores_types(facts), values).model_validate(values)


def parse_evaluation(facts: Facts, content: bytes) -> dict[str, Scores]:
    """The scores in a run's evaluation.json, by set. Raises ValueError for the scores of another kind of model."""
    found = _SETS.validate_json(content)
    return {set_name: parse_scores(facts, values) for set_name, values in found.items() if values is not None}


def check_finite(name: str, value: float, when: str) -> None:
    """Raises Diverged if the value of this name is not finite."""
    if not math.isfinite(value):
        raise Diverged(
            f"training diverged: {name} is {value} {when}. Lower the optimizer's learningRate, add a warm-up "
            "(spec.training.scheduler) or set spec.training.gradientClipping."
        )
