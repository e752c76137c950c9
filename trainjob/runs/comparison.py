"""`baselines.json`: compares the trained model with the baselines on the held-out rows."""

from typing import Literal

from trainjob.evaluation.paired import Estimate, Lead, ScoreEstimates
from trainjob.runs.files import BASELINES
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder


class CascadePoint(StrictModel):
    """The trained model where the probability of its prediction reaches a threshold, the language model otherwise."""

    threshold: float
    """In 0 to 1."""
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
    """By ascending threshold, from the trained model alone on."""


class Baseline(StrictModel):
    """A classifier that the model is compared with."""

    name: str
    """Its name, as in `spec.baselines`."""
    standing: ScoreEstimates | None = None
    """Its score; None if it could not be computed."""
    lead: Lead | None = None
    """The model's lead."""
    notes: list[str] = []
    """Simplifications, in words."""
    cascade: Cascade | None = None
    """Cascade of the trained model and this one; None unless this is a language model."""
    error: str = ""
    """Why it could not be computed."""
    seconds: float = 0.0
    """Seconds that it took."""


class Comparison(StrictModel):
    """The model and the baselines on the same rows."""

    set_name: Literal["test", "validation"]
    """The set of the rows; validation if there is no test set."""
    rows: int
    """Rows that were compared."""
    of_rows: int
    """Rows of the set. If it has more rows than were compared, those are drawn at random."""
    model: ScoreEstimates
    """The trained model's score on them."""
    baselines: list[Baseline]
    """In the order of `spec.baselines`."""


def read_comparison(run: Folder) -> Comparison | None:
    """Returns None if there is no comparison. Raises ValueError for a damaged file."""
    return Comparison.model_validate_json(run.read(BASELINES)) if run.exists(BASELINES) else None


def write_comparison(run: Folder, comparison: Comparison) -> None:
    run.write(BASELINES, comparison.model_dump_json(by_alias=True, indent=1).encode())
