"""Reads all files of a run's folder, for the report."""

from dataclasses import dataclass, field
from typing import Any

from trainjob.api import TrainJob
from trainjob.evaluation import Scores, parse_evaluation
from trainjob.runs.comparison import Comparison, read_comparison
from trainjob.runs.files import BASELINES, EVALUATION, METRICS, VARIANTS_TABLE
from trainjob.runs.folder import parse_job, read_job_yaml
from trainjob.runs.history import read_history
from trainjob.runs.refusals import refuse_damaged
from trainjob.runs.summary import Summary, read_summary
from trainjob.runs.tracked import Tracked, read_tracked
from trainjob.runs.trials import Trial, read_trials
from trainjob.runs.variants import Variants, read_variants
from trainjob.storage import Folder


@dataclass(frozen=True)
class Contents:
    """The content of a run's folder, of a finished or an unfinished run."""

    uri: str
    job: TrainJob
    job_yaml: str
    """The text of `trainjob.yaml`."""
    records: list[dict[str, Any]]
    """The lines of `metrics.jsonl`."""
    evaluation: dict[str, Scores]
    """Scores of the best checkpoint by set: `validation`, `test`."""
    summary: Summary | None
    """None while the run has not finished."""
    comparison: Comparison | None = None
    """The comparison with the baselines; None if there is none."""
    variants: Variants | None = None
    """Measurements of the smaller variants of the model; None if there are none."""
    trials: list[Trial] = field(default_factory=list[Trial])
    """The trials of `spec.tuning`, in order."""
    tracked: dict[str, Tracked] = field(default_factory=dict[str, Tracked])
    """The run in each experiment tracker, by the tracker's name."""


def read_contents(run: Folder) -> Contents:
    """Reads a run's folder.

    Raises UserError if the folder is not a run's or one of its files is damaged.
    """
    job_yaml = read_job_yaml(run)
    job = parse_job(run, job_yaml)
    with refuse_damaged(run, METRICS):
        records = read_history(run)
        if not all({"kind", "step", "epoch"} <= set(record) for record in records):
            raise ValueError("a line is not the record of a step or an epoch")
    with refuse_damaged(run, EVALUATION):
        evaluation = parse_evaluation(job.spec.model.facts, run.read(EVALUATION)) if run.exists(EVALUATION) else {}
    with refuse_damaged(run, BASELINES):
        comparison = read_comparison(run, job.spec.model.facts)
    with refuse_damaged(run, VARIANTS_TABLE):
        variants = read_variants(run)
    summary, trials, tracked = read_summary(run), read_trials(run), read_tracked(run)
    return Contents(run.uri, job, job_yaml, records, evaluation, summary, comparison, variants, trials, tracked)
