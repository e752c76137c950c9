"""What a run's folder holds, read for the report."""

from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import TypeAdapter

from trainjob.api import TrainJob
from trainjob.errors import UserError
from trainjob.evaluation.scores import AnyScores
from trainjob.runs.comparison import Comparison, read_comparison
from trainjob.runs.files import BASELINES, EVALUATION, METRICS, TRAINJOB, VARIANTS_TABLE
from trainjob.runs.history import read_history
from trainjob.runs.summary import Summary, read_summary
from trainjob.runs.trials import Trial, read_trials
from trainjob.runs.variants import Variants, read_variants
from trainjob.storage import Folder

_Evaluation = TypeAdapter(dict[str, AnyScores | None])


@dataclass(frozen=True)
class Contents:
    """A run, as far as it has come."""

    uri: str
    job: TrainJob
    job_yaml: str
    """The job as the run keeps it."""
    records: list[dict[str, Any]]
    """The lines of `metrics.jsonl`."""
    evaluation: dict[str, AnyScores]
    """Scores of the best checkpoint by set: `validation`, `test`."""
    summary: Summary | None
    """None while the run has not finished."""
    comparison: Comparison | None = None
    """With the baselines; None where there are none."""
    variants: Variants | None = None
    """Smaller models made of its own; None where there are none."""
    trials: list[Trial] = field(default_factory=list[Trial])
    """Those of `spec.tuning`, in order."""


def read_contents(run: Folder) -> Contents:
    """Reads a run's folder.

    Raises UserError where the folder is not a run's or one of its files cannot be read as what it should be.
    """
    if not run.exists(TRAINJOB):
        raise UserError(f"{run.uri} is not the folder of a run: it has no {TRAINJOB}. Give the folder of one run.")
    name = TRAINJOB
    try:
        text = run.read(name).decode()
        job = TrainJob.model_validate(yaml.safe_load(text))
        name = METRICS
        records = read_history(run)
        if not all({"kind", "step", "epoch"} <= set(record) for record in records):
            raise ValueError("a line is not the record of a step or an epoch")
        name = EVALUATION
        sets = _Evaluation.validate_json(run.read(name)) if run.exists(name) else {}
        name = BASELINES
        comparison = read_comparison(run)
        name = VARIANTS_TABLE
        variants = read_variants(run)
    except (TypeError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{run.uri}/{name} is damaged or of another version of trainjob: {error}") from error
    summary = read_summary(run)
    evaluation = {each: scores for each, scores in sets.items() if scores is not None}
    return Contents(run.uri, job, text, records, evaluation, summary, comparison, variants, read_trials(run))
