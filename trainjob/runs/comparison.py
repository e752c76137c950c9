"""`baselines.json`: compares the trained model with the baselines on the held-out rows."""

from typing import Any, Generic, Literal

from pydantic import TypeAdapter
from typing_extensions import TypeVar

from trainjob.evaluation.estimates import Estimate, Lead, ScoreEstimates
from trainjob.evaluation.scores.base import best_matching_type, scores_types
from trainjob.kinds.facts import Facts
from trainjob.runs.files import BASELINES
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder

Estimates = TypeVar("Estimates", bound=ScoreEstimates, default=Any)
_PARTS = TypeAdapter(dict[str, Any])
Ahead = TypeVar("Ahead", bound=Lead, default=Any)


class CascadePoint(StrictModel):
    """The trained model where the probability of its prediction reaches a threshold, the language model otherwise."""

    threshold: float
    """The threshold, from 0 to 1."""
    asked: int
    """Rows that the language model is asked about: a request each."""
    tokens: int
    """Tokens of these requests and their answers."""
    cost: float
    """Cost of these tokens, in the currency of the prices."""
    accuracy: Estimate
    """Fraction of rows for which the right class is predicted."""
    f1: Estimate
    """F1, the mean over classes."""


class Cascade(StrictModel):
    """Score and cost of a cascade of both models."""

    rows: int
    """Rows that the language model has answered, which all points are on."""
    points: list[CascadePoint]
    """Sorted by ascending threshold; the first is the trained model alone."""


class Baseline(StrictModel, Generic[Estimates, Ahead]):
    """A cheap model that the trained one is compared with."""

    name: str
    """Its name, as in `spec.baselines`."""
    standing: Estimates | None = None
    """Its score; None if it could not be computed."""
    lead: Ahead | None = None
    """The model's lead."""
    notes: list[str] = []
    """Simplifications, in words."""
    cascade: Cascade | None = None
    """Cascade of the trained model and this one; None unless this is a language model."""
    variant: bool = False
    """Whether the model is kept as a variant of the run, of the same name."""
    error: str = ""
    """Why it could not be computed."""
    seconds: float = 0.0
    """Seconds that it took."""


class ColumnImportance(StrictModel):
    """How much the model relies on a column."""

    column: str
    """Its name."""
    drop: Estimate
    """How much worse the main score becomes when the column is shuffled: the mean of the repeats, and of their 95%
    bootstrap intervals."""


class Importance(StrictModel):
    """Permutation importance of the columns of a table."""

    rows: int
    """Rows whose cells were shuffled, drawn at random of those that were compared."""
    repeats: int
    """Number of times that each column was shuffled."""
    columns: list[ColumnImportance] = []
    """The most important first."""
    error: str = ""
    """Why it could not be computed."""


class Comparison(StrictModel, Generic[Estimates, Ahead]):
    """The model and the baselines on the same rows."""

    set_name: Literal["test", "validation"]
    """The set of the rows; validation if there is no test set."""
    rows: int
    """Rows that were compared."""
    of_rows: int
    """Rows of the set. If it has more rows than were compared, those are drawn at random."""
    model: Estimates
    """The trained model's score on them."""
    baselines: list[Baseline[Estimates, Ahead]]
    """In the order of `spec.baselines`."""
    importance: Importance | None = None
    """The importance of each column; None for models that read no table, and in files of earlier versions."""


def read_comparison(run: Folder, facts: Facts) -> Comparison | None:
    """The comparison of a model of this kind; None if there is none. Raises ValueError for a damaged file."""
    if not run.exists(BASELINES):
        return None
    content = run.read(BASELINES)
    leads = dict(each.compared_types() for each in scores_types(facts))
    model = _PARTS.validate_json(content).get("model")
    estimates = best_matching_type(list(leads), model if isinstance(model, dict) else {})
    return Comparison[estimates, leads[estimates]].model_validate_json(content)


def write_comparison(run: Folder, comparison: Comparison) -> None:
    run.write(BASELINES, comparison.model_dump_json(by_alias=True, indent=1).encode())
