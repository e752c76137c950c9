"""A run's folder → one self-contained HTML document."""

from collections.abc import Sequence

from trainjob.report.baselines import (
    CASCADE_HEADINGS,
    CASCADE_REMARK,
    better_baseline,
    cascade_chart,
    cascade_of,
    cascade_table,
    comparison_table,
    headings,
    remarks,
)
from trainjob.report.card import usage
from trainjob.report.charts import MAX_METRICS, Chart, charts, describe, draw, metric_names
from trainjob.report.charts import remarks as chart_remarks
from trainjob.report.data import class_facts, data_table
from trainjob.report.held_out import HeldOut, read_held_out, read_validated
from trainjob.report.importance import importance_view
from trainjob.report.mistakes import mistakes_view
from trainjob.report.reliability import HEADINGS as HEADINGS_OF_BINS
from trainjob.report.reliability import reliability_view
from trainjob.report.templates import template
from trainjob.report.threshold import ThresholdView, binary, threshold_view
from trainjob.report.trials import trials_view
from trainjob.report.variants import HEADINGS as HEADINGS_OF_VARIANTS
from trainjob.report.variants import remark as remark_on_variants
from trainjob.report.variants import variants_picture, variants_table
from trainjob.runs.contents import Contents, read_contents
from trainjob.runs.files import REPORT
from trainjob.runs.history import beside_epoch
from trainjob.runs.summary import Summary
from trainjob.storage import Folder


def render(run: Folder) -> str:
    """The report of a run, finished or under way, as one HTML document that loads nothing from elsewhere.

    Raises UserError if the folder is not that of a run or one of its files is damaged.
    """
    return template("report.html.j2").render(_view(read_contents(run), run))


def write_report(run: Folder) -> None:
    """Writes the run's report, or replaces it."""
    run.write(REPORT, render(run).encode())


def _view(run: Contents, folder: Folder) -> dict[str, object]:
    """The variables of the template."""
    summary = run.summary
    best = summary.best_checkpoint if summary else None
    steps = [record for record in run.records if record["kind"] == "step"]
    validated = [record for record in run.records if record["kind"] != "step"]
    epochs = [record for record in validated if record["kind"] == "epoch"]
    metrics = metric_names(validated)
    errors, unit = run.job.spec.model.facts.errors, run.job.spec.unit_of_errors
    drawn = [
        (chart, describe(chart), draw(chart, epochs, best.step if best else None, f"chart-{number}"))
        for number, chart in enumerate(charts(steps, validated, errors, unit), start=1)
    ]
    profile = summary.data if summary else None
    has_texts = run.job.spec.dataset is not None and run.job.spec.dataset.text is not None
    cascade = cascade_of(run.comparison)
    held = read_held_out(run, folder)
    threshold = _threshold(run, folder, held)
    evaluation = dict(sorted(run.evaluation.items()))  # test comes before validation
    judged_by, scores = next(iter(evaluation.items()), ("", None))
    return {
        "run": run,
        "summary": summary,
        "last_metrics": beside_epoch(summary.metrics) if summary else {},
        "best": best,
        "model": run.job.spec.model.kind.description,
        "charts": drawn,
        "epochs": epochs,
        "metrics": metrics[:MAX_METRICS],
        "chart_remarks": chart_remarks(metrics, validated),
        "evaluation": evaluation,
        "scores_section": scores.section if scores else None,
        "tiles": [(f"{name}, {judged_by}", value) for name, value in scores.tiles()] if scores else [],
        "better_baseline": better_baseline(run.comparison) if run.comparison else None,
        "headings": headings(run.comparison) if run.comparison else (),
        "comparison_table": comparison_table(run.comparison) if run.comparison else [],
        "remarks": remarks(run.comparison, unit) if run.comparison else [],
        "importance": importance_view(run.comparison) if run.comparison else None,
        "cascade_headings": CASCADE_HEADINGS,
        "cascade_table": cascade_table(cascade) if cascade else [],
        "cascade_remark": CASCADE_REMARK,
        "cascade_charts": _drawn([cascade_chart(cascade)], "cascade") if cascade else [],
        "variants_headings": HEADINGS_OF_VARIANTS,
        "variants_table": variants_table(run.variants) if run.variants else [],
        "variants_picture": variants_picture(run.variants) if run.variants else ("", ""),
        "variants_remark": remark_on_variants(run.variants) if run.variants else "",
        "trials": trials_view(run, folder),
        "mistakes": mistakes_view(held, folder) if held else None,
        "reliability": reliability_view(held) if held and held.classes else None,
        "bins_headings": HEADINGS_OF_BINS,
        "threshold": threshold,
        "threshold_charts": _drawn(threshold.charts, "threshold") if threshold else [],
        "profile": profile,
        "alarms": [remark for remark in profile.remarks if remark.is_severe] if profile else [],
        "data_table": data_table(profile, has_texts) if profile else [],
        "class_facts": class_facts(profile) if profile else [],
        "stages": stages(summary) if summary else [],
        "usage": usage(run, run.uri) if summary else [],
    }


def _threshold(run: Contents, folder: Folder, held: HeldOut | None) -> ThresholdView | None:
    """None where there are not two classes whose probabilities are kept."""
    rows = binary(held) if held else None
    if rows is None:
        return None
    validated = read_validated(run, folder)
    return threshold_view(rows, binary(validated) if validated else None, run.job.spec.checkpoints.metric)


def _drawn(charts: Sequence[Chart], prefix: str) -> list[tuple[Chart, str, str]]:
    """The charts with their text alternatives and as SVG. Their x axes are not the course of training."""
    return [(chart, describe(chart), draw(chart, [], None, f"{prefix}-{n}")) for n, chart in enumerate(charts, start=1)]


def stages(summary: Summary) -> list[tuple[str, float, float]]:
    """Name, seconds and share of each stage; `other` is the time between start and end that no stage accounts for."""
    known = dict(summary.seconds)
    other = summary.elapsed - sum(known.values())
    if known and other > 0.01 * summary.elapsed:
        known["other"] = other
    total = sum(known.values())
    return [(name, seconds, seconds / total if total else 0.0) for name, seconds in known.items()]
