"""Decides whether two runs can be compared on the same rows, and computes the lead of one model over the other."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trainjob.api import Source, TrainJobSpec
from trainjob.data.read.source import sources_of
from trainjob.errors import listed
from trainjob.evaluation import Scores
from trainjob.evaluation.estimates import Lead
from trainjob.runs.contents import Contents
from trainjob.runs.files import FITTED, MODEL, PREDICTIONS, SPLIT
from trainjob.runs.predictions import read_predictions
from trainjob.runs.refusals import refuse_damaged
from trainjob.storage import Folder


@dataclass(frozen=True)
class ComparableRun:
    """The predictions of a run's model for its held-out rows."""

    scores: Scores
    source: Source
    rows_name: str
    """The rows and their source, for a message."""
    division: Any
    """Identifies the rows of the source, and those of them that are set aside; None where all rows are judged."""
    labels: pa.ChunkedArray
    predicted: pa.ChunkedArray

    @property
    def main_score(self) -> str:
        """The score that such models are compared by."""
        estimates = self.scores.estimates
        assert estimates is not None, "models that keep predictions are compared by an estimate"
        return estimates.main_name


def comparable_run(contents: Contents, folder: Folder) -> ComparableRun | None:
    """The predictions of a run; None if it has not kept them."""
    dataset, scores = contents.job.spec.dataset, next(iter(contents.evaluation.values()), None)
    if dataset is None or scores is None or not folder.exists(f"{PREDICTIONS}/{MODEL}.parquet"):
        return None
    stored, name = read_predictions(folder, MODEL), dataset.held_out_set
    source, rows_name, division = sources_of(dataset).get(name), f"the {name} rows of ", None
    if source is None:
        source, rows_name, division = (
            dataset.train,
            "validation rows set aside from ",
            _division(contents.job.spec, folder),
        )
    return ComparableRun(
        scores, source, rows_name + listed(source.all_uris), division, stored["label"], stored["prediction"]
    )


def why_no_lead(run: ComparableRun | None, first: ComparableRun | None) -> str:
    """Why a run cannot be compared with the first one, as a clause; empty if it can."""
    if run is None or first is None:
        without = "it" if run is None else "the first run"
        return f"{without} has no predictions to compare (unfinished, or of a kind of model that keeps none)"
    if run.main_score != first.main_score:
        return f"it is judged by {run.main_score}, the first run by {first.main_score}"
    if (run.rows_name, run.source) != (first.rows_name, first.source):
        return f"it was scored on {run.rows_name}, the first run on {first.rows_name}"
    if run.division != first.division:
        return "other validation rows were set aside (another seed or fraction, other columns or other data)"
    if run.labels != first.labels:
        return "its rows have other labels than those of the first run"
    return ""


def lead_over(run: ComparableRun | None, first: ComparableRun | None) -> Lead | None:
    """The lead of the model of a run over that of the first one; None if they cannot be compared."""
    if run is None or first is None or why_no_lead(run, first):
        return None
    columns = (run.labels, run.predicted, first.predicted)
    judge = run.scores.judge_of(columns)
    return judge.lead(*map(judge.values, columns)) if judge is not None else None


def _division(spec: TrainJobSpec, run: Folder) -> Any:
    """Identifies the rows that may be set aside, and those that are: as they were recorded or, in a run of an earlier
    version, by the fields of the spec that decide."""
    if run.exists(f"{FITTED}/{SPLIT}"):
        with refuse_damaged(run, f"{FITTED}/{SPLIT}"):
            state = json.loads(run.read(f"{FITTED}/{SPLIT}"))
            if (contents := state.get("contents", {}).get("train")) is not None:
                return contents, state["split"]
    dataset = spec.dataset
    assert dataset is not None
    return dataset.validation, spec.training.seed, dataset.text, dataset.text_pair, dataset.text_negative
