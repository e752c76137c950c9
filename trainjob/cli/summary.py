"""The lines that `trainjob run` prints at the end."""

from collections.abc import Mapping

from trainjob.api.training_status import BestTrial
from trainjob.cli.status_text import first_of
from trainjob.evaluation import Scores
from trainjob.formatting import count, duration, score
from trainjob.report.baselines import better_baseline, in_brief
from trainjob.runs.comparison import Comparison
from trainjob.runs.files import MODEL, REPORT
from trainjob.runs.history import shown_name
from trainjob.runs.summary import Summary
from trainjob.tuning.board import in_words


def summary_lines(
    summary: Summary,
    run: str,
    evaluation: Mapping[str, Scores],
    comparison: Comparison | None = None,
    has_report: bool = True,
    best_trial: BestTrial | None = None,
) -> list[str]:
    """The result of the run in the folder `run`, and the paths of its files; `evaluation` holds scores by part of the
    data, `comparison` those of the baselines.

    A line each, ready to print.
    """
    taken = duration(sum(summary.seconds.values()))
    rows = [("trained in", taken + (" (stopped early)" if summary.stopped_early else ""))]
    if best := summary.best_checkpoint:
        rows.append(("best", f"epoch {best.epoch}, step {count(best.step)}: {best.metric} {score(best.value)}"))
    if best_trial is not None:
        rows.append(("best trial", f"{best_trial.number}: {in_words(best_trial.parameters)}"))
    rows += [(part, scores.in_brief()) for part, scores in evaluation.items()]
    rows += [(f"vs {each.name}", in_brief(each)) for each in (comparison.baselines if comparison else [])]
    if summary.metrics:
        metrics = first_of([f"{shown_name(name)} {score(value)}" for name, value in summary.metrics.items()])
        rows.append(("last metrics", "   ".join(metrics)))
    elif not (best or comparison):  # a function
        rows.append(("last metrics", "none: the function has reported none"))
    if summary.checkpoint:
        rows.append(("checkpoint", summary.checkpoint))
    if best:
        rows.append(("model", f"{run}/{MODEL}"))
    missing = "" if has_report else f" is missing: `trainjob report {run}` writes it"
    rows.append(("report", f"{run}/{REPORT}{missing}"))
    width = max(len(name) for name, _ in rows)
    better = better_baseline(comparison) if comparison else None
    first = f"{summary.name}: {summary.outcome.lower()}" + (f"; {better.in_brief}" if better else "")
    return [first, *(f"  {name:<{width}}  {value}" for name, value in rows)]
