"""Several runs side by side: what differs in their TrainJobs, their scores, their curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import yaml

from trainjob.errors import UserError
from trainjob.evaluation import Scores
from trainjob.evaluation.estimates import Lead
from trainjob.formatting import MISSING, count, duration, title
from trainjob.report.baselines import RULE
from trainjob.report.charts import (
    MAX_METRICS,
    Chart,
    Series,
    describe,
    draw,
    grouped,
    metric_names,
    series_of,
    smoothed,
)
from trainjob.report.charts import remarks as chart_remarks
from trainjob.report.comparable import comparable_run, lead_over, why_no_lead
from trainjob.report.mistakes import common_folder
from trainjob.report.templates import template
from trainjob.runs.contents import Contents, read_contents
from trainjob.runs.folder import flatten, to_dict
from trainjob.storage import Folder

_NOT_COMPARED = ("spec.storage",)
_LONG = {"per_class", "confusion", "per_label", "together", "predicted_together"}


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs that are compared."""

    name: str
    """The TrainJob's name or, if two runs share it, the path of the run below the folder that all runs are in."""
    contents: Contents
    set_name: str
    """The set that it is judged by: test or, without a test set, validation; empty before there are scores."""
    lead: Lead | None
    """The lead over the first run, if both were scored on the same rows."""
    why_no_lead: str
    """Why another run than the first has no lead, as a clause; otherwise empty."""

    @property
    def scores(self) -> Scores | None:
        """The scores of the best checkpoint on the set `set_name`."""
        return self.contents.evaluation.get(self.set_name)


def compare(folders: Sequence[Folder]) -> list[ComparedRun]:
    """Reads the runs. Raises UserError where there are not at least two different ones, or one cannot be read."""
    uris = [folder.uri.rstrip("/") for folder in folders]
    if twice := next((uri for uri in uris if uris.count(uri) > 1), None):
        raise UserError(f"{twice} is given twice")
    if len(folders) < 2:
        raise UserError("give at least two runs to compare")
    contents = [read_contents(folder) for folder in folders]
    names, parent = [each.job.metadata.name for each in contents], common_folder(uris)
    held = [comparable_run(each, folder) for each, folder in zip(contents, folders, strict=True)]
    names = [uri.removeprefix(parent) if names.count(name) > 1 else name for name, uri in zip(names, uris, strict=True)]
    return [
        ComparedRun(names[0], contents[0], _set_name(contents[0]), None, ""),
        *(
            ComparedRun(name, each, _set_name(each), lead_over(rows, held[0]), why_no_lead(rows, held[0]))
            for name, each, rows in zip(names[1:], contents[1:], held[1:], strict=True)
        ),
    ]


def differences(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    """Path and, for each run, value of every field that is not the same in all TrainJobs."""
    specs = [flatten({"spec": to_dict(run.contents.job)["spec"]}) for run in runs]
    paths = list(dict.fromkeys(path for spec in specs for path in spec if not path.startswith(_NOT_COMPARED)))
    lines = [(path, [_shown(spec.get(path)) for spec in specs]) for path in paths]
    return [(path, values) for path, values in lines if len(set(values)) > 1]


def score_table(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    """Name and, for each run, value of each measure."""
    found = [run.scores.compared(run.lead) if run.scores else {} for run in runs]
    names = dict.fromkeys(name for each in found for name in each)
    lines = [(name, [each.get(name, MISSING) for each in found]) for name in names]
    return [
        ("Set", [run.set_name or MISSING for run in runs]),
        *((name, values) for name, values in lines if set(values) != {MISSING}),
        ("Parameters", [_parameters(run) for run in runs]),
        ("Trained in", [_time(run) for run in runs]),
    ]


def remarks(runs: Sequence[ComparedRun]) -> list[str]:
    """Sentences about the scores: why runs have no lead over the first one."""
    return [f"{run.name} has no lead over {runs[0].name}: {run.why_no_lead}." for run in runs if run.why_no_lead]


def to_json(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """The comparison as JSON: `runs` in their order, and each of the `differences` with a value or null a run."""
    specs = [flatten({"spec": to_dict(run.contents.job)["spec"]}) for run in runs]
    return {
        "runs": [_run_to_json(run) for run in runs],
        "differences": {path: [spec.get(path) for spec in specs] for path, _ in differences(runs)},
    }


def _run_to_json(run: ComparedRun) -> dict[str, Any]:
    scores, ahead = run.scores, run.lead
    estimates = scores.estimates if scores else None
    return {
        "name": run.name,
        "uri": run.contents.uri,
        "finished": run.contents.summary is not None,
        "set": run.set_name or None,
        "scores": scores and scores.model_dump(mode="json", by_alias=True, exclude=_LONG),
        "standing": estimates and estimates.model_dump(mode="json", by_alias=True),
        "leadOverFirst": ahead and {**ahead.model_dump(mode="json", by_alias=True), "verdict": ahead.verdict},
        "whyNoLead": run.why_no_lead or None,
    }


def render_comparison(runs: Sequence[ComparedRun]) -> str:
    """One HTML document that loads nothing from elsewhere."""
    drawn = [
        (chart, describe(chart), draw(chart, ticks, None, f"chart-{number}"))
        for number, (chart, ticks) in enumerate(_charts(runs), start=1)
    ]
    epochs = _epochs(runs)
    models = [(run.name, run.contents.uri, run.contents.job.spec.model.kind.description) for run in runs]
    return template("compare.html.j2").render(
        names=[run.name for run in runs],
        models=models,
        differences=differences(runs),
        rule=RULE,
        scores=score_table(runs),
        remarks=remarks(runs),
        charts=drawn,
        chart_remarks=chart_remarks(_metrics(epochs), list(chain.from_iterable(epochs))),
    )


def _set_name(contents: Contents) -> str:
    return next((each for each in ("test", "validation") if each in contents.evaluation), "")


def _parameters(run: ComparedRun) -> str:
    summary = run.contents.summary
    return count(summary.parameters) if summary and summary.parameters is not None else MISSING


def _time(run: ComparedRun) -> str:
    summary = run.contents.summary
    return duration(sum(summary.seconds.values())) if summary else "not finished"


def _charts(runs: Sequence[ComparedRun]) -> list[tuple[Chart, list[dict[str, Any]]]]:
    """Charts with a curve for each run, with the epochs as marks on the axis; the chart of the loss by steps has no
    marks."""
    records = [run.contents.records for run in runs]
    epochs = _epochs(runs)
    ticks = [{"step": epoch, "epoch": epoch} for epoch in sorted({row["epoch"] for each in epochs for row in each})]
    steps = [smoothed(series_of([row for row in each if row["kind"] == "step"], "loss")) for each in records]
    by_step = grouped("Training loss, smoothed", [_named(run, each) for run, each in zip(runs, steps, strict=True)])
    by_epoch = [
        chart
        for name in _metrics(epochs)[:MAX_METRICS]
        for chart in grouped(
            title(name),
            [_named(run, series_of(each, name)) for run, each in zip(runs, epochs, strict=True)],
        )
    ]
    return [*((chart, []) for chart in by_step), *((chart, ticks) for chart in by_epoch)]


def _epochs(runs: Sequence[ComparedRun]) -> list[list[dict[str, Any]]]:
    """The records of each run's epochs, placed by the epoch instead of the step."""
    return [
        [record | {"step": record["epoch"]} for record in run.contents.records if record["kind"] == "epoch"]
        for run in runs
    ]


def _metrics(epochs: Sequence[list[dict[str, Any]]]) -> list[str]:
    return metric_names(list(chain.from_iterable(epochs)))


def _named(run: ComparedRun, series: Series) -> Series:
    return replace(series, name=run.name)


def _shown(value: Any) -> str:
    return MISSING if value is None else yaml.safe_dump(value, default_flow_style=True, width=10**6).split("\n")[0]
