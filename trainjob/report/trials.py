"""The trials of `spec.tuning`: a table, their curves, their parameters side by side, and which of these mattered."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from trainjob.api.tuning import number_of_trials
from trainjob.errors import listed
from trainjob.formatting import duration, percent, readable, score, title
from trainjob.report.charts import GRID, INK, SERIES, STYLE, Drawing, Record, inline_svg
from trainjob.runs.contents import Contents
from trainjob.runs.trials import Trial, TrialState, optuna_study, ranked_trials, read_trial_records, short_names
from trainjob.storage import Folder

MIN_TRIALS_FOR_IMPORTANCE = 5
"""With fewer trials, importances are mostly chance."""
REMARK = (
    "Importance: how much of the differences between the trials' values a parameter explains by itself (functional "
    "ANOVA over a random forest; Hutter, Hoos and Leyton-Brown, 2014). With few trials, it is only a rough guess."
)


@dataclass(frozen=True)
class TrialsView:
    """The content of the section."""

    progress: str
    """How many trials have ended, and which is the best so far, in words."""
    best: Trial | None
    """None before any trial has a value."""
    metric: str
    """The metric that ranks the trials."""
    headings: list[str]
    table: list[tuple[str, ...]]
    """A line for each trial, best first, with a cell for each of the headings."""
    failures: list[str]
    """The failed trials, with the reasons."""
    importances: list[tuple[str, str]]
    """Parameter and share, the most important first; empty where there are too few trials."""
    remark: str
    pictures: list[Drawing]


def trials_view(run: Contents, folder: Folder) -> TrialsView | None:
    """None for a run without `spec.tuning`, or before its first trial."""
    tuning, checkpoints = run.job.spec.tuning, run.job.spec.checkpoints
    if tuning is None or not run.trials:
        return None
    ranked = ranked_trials(run.trials, checkpoints.lower_is_better)
    rest = {trial.number for trial in run.trials} - {trial.number for trial in ranked}
    others = [trial for trial in run.trials if trial.number in rest]
    names = short_names(list(tuning.tuned))
    importances = _importances(run, ranked)
    curves = _curves(read_trial_records(folder, run.trials), checkpoints.metric, ranked)
    return TrialsView(
        _progress(run, ranked, names),
        ranked[0] if ranked else None,
        readable(checkpoints.metric),
        ["Trial", "State", title(checkpoints.metric), "Epochs", "Time", *names.values()],
        [_line(trial, list(names)) for trial in [*ranked, *others]],
        _failures(others),
        [(names[path], percent(share)) for path, share in importances.items()],
        REMARK if importances else "",
        [*curves, *_side_by_side(run, ranked, names)],
    )


def _progress(run: Contents, ranked: Sequence[Trial], names: dict[str, str]) -> str:
    assert run.job.spec.tuning is not None
    counts = Counter(trial.state for trial in run.trials)
    ended = sum(count for state, count in counts.items() if state != "running")
    progress = f"{ended} of {number_of_trials(run.job.spec.tuning)} trials have ended"
    states: dict[TrialState, str] = {"running": "running", "stopped": "stopped early", "failed": "failed"}
    progress += "".join(f", {counts[state]} {word}" for state, word in states.items() if counts[state])
    if not ranked:
        return progress
    parameters = ", ".join(f"{names[path]} {_short(value)}" for path, value in ranked[0].parameters.items())
    metric = readable(run.job.spec.checkpoints.metric)
    return (
        f"{progress}. The best so far is trial {ranked[0].number}: {metric} {score(ranked[0].value)} with {parameters}"
    )


def _line(trial: Trial, paths: list[str]) -> tuple[str, ...]:
    parameters = (_short(trial.parameters.get(path, "")) for path in paths)
    return (str(trial.number), trial.state, score(trial.value), str(trial.epochs), duration(trial.seconds), *parameters)


def _failures(trials: Sequence[Trial]) -> list[str]:
    """A sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if trial.state == "failed":
            reasons.setdefault(trial.error, []).append(str(trial.number))
    return [f"Failed: {'trial' if len(some) == 1 else 'trials'} {listed(some)}: {why}" for why, some in reasons.items()]


def _short(value: object) -> str:
    """A parameter with four digits; trial.json has all of them."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _importances(run: Contents, ranked: Sequence[Trial]) -> dict[str, float]:
    if len(ranked) < MIN_TRIALS_FOR_IMPORTANCE or len({trial.value for trial in ranked}) == 1:
        return {}
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    assert run.job.spec.tuning is not None
    study = optuna_study(run.job.spec.tuning, ranked, run.job.spec.checkpoints.lower_is_better)
    return get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))


def _curves(records: dict[int, list[Record]], metric: str, ranked: Sequence[Trial]) -> list[Drawing]:
    """The checkpoints' metric of each trial, epoch by epoch; the best one's stands out."""
    best = ranked[0].number if ranked else None
    points = {number: _points(lines, metric) for number, lines in records.items()}
    drawn = {number: found for number, found in points.items() if found}
    if not drawn:
        return []
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 2.8), facecolor="none", layout="constrained")
        axes = figure.add_subplot(facecolor="none")
        for number, found in sorted(drawn.items(), key=lambda item: item[0] == best):
            _plot(axes, *zip(*found, strict=True), is_best=number == best)
        axes.set_xlabel("epoch", color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color=GRID, linewidth=0.7)
        _style(axes)
        svg = inline_svg(figure, "trial-curves")
    ends = "; ".join(f"trial {number} ends at {found[-1][1]:.4g}" for number, found in drawn.items())
    return [Drawing(f"{title(metric)} of each trial, the best one's in color", svg, f"{ends}.")]


def _points(records: Sequence[Record], metric: str) -> list[tuple[int, float]]:
    epochs = [(each["epoch"], each.get(metric)) for each in records if each["kind"] == "epoch"]
    return [(epoch, value) for epoch, value in epochs if isinstance(value, float | int) and math.isfinite(value)]


def _plot(axes: Axes, x: Sequence[float], y: Sequence[float], *, is_best: bool) -> None:
    axes.plot(
        x,
        y,
        color=SERIES[0] if is_best else INK,
        alpha=1 if is_best else 0.35,
        linewidth=2 if is_best else 0.9,
        marker="o",
        markersize=3.5 if is_best else 2,
    )


def _side_by_side(run: Contents, ranked: Sequence[Trial], names: dict[str, str]) -> list[Drawing]:
    """Parallel coordinates: an axis for each parameter and one for the metric, and a line across for each trial."""
    if len(ranked) < 2:
        return []
    tuning = run.job.spec.tuning
    assert tuning is not None
    logarithmic = {path for path, parameter in tuning.tuned.items() if parameter.chosen == "log_uniform"}
    columns = {names[path]: _axis([trial.parameters[path] for trial in ranked], path in logarithmic) for path in names}
    columns[readable(run.job.spec.checkpoints.metric)] = _axis([trial.value for trial in ranked], False)
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 3.2), facecolor="none", layout="constrained")
        axes = figure.add_subplot(facecolor="none")
        for row in reversed(range(len(ranked))):
            heights = [heights_of[row] for heights_of, _ in columns.values()]
            _plot(axes, range(len(columns)), heights, is_best=row == 0)
        for axis, (_, labels) in enumerate(columns.values()):
            axes.axvline(axis, color=GRID, linewidth=0.9)
            side = -1 if axis == 0 else 1  # away from the lines that end at the first axis
            for height, label in labels:
                axes.annotate(
                    label,
                    (axis, height),
                    (6 * side, 0),
                    textcoords="offset points",
                    ha="right" if side < 0 else "left",
                    va="center",
                    color=INK,
                )
        axes.set_xticks(range(len(columns)), list(columns))
        axes.set_xlim(-0.2, len(columns) - 0.6)
        axes.set_yticks([])
        _style(axes)
        svg = inline_svg(figure, "trial-parameters")
    parameters = ", ".join(f"{names[path]} {_short(value)}" for path, value in ranked[0].parameters.items())
    return [Drawing("The parameters of each trial, the best one's in color", svg, f"The best trial has {parameters}.")]


def _axis(values: Sequence[Any], logarithmic: bool) -> tuple[list[float], list[tuple[float, str]]]:
    """The position of each value on an axis from 0 to 1, and the labels: at its ends or, for words, at each word."""
    if any(isinstance(value, str | bool) for value in values):
        words = sorted(set(map(str, values)))
        heights = {word: index / max(len(words) - 1, 1) for index, word in enumerate(words)}
        return [heights[str(value)] for value in values], [(height, word) for word, height in heights.items()]
    numbers = [math.log(value) if logarithmic else value for value in values]
    low, width = min(numbers), max(numbers) - min(numbers) or 1
    ends = sorted({(min(numbers), min(values)), (max(numbers), max(values))})
    return [(number - low) / width for number in numbers], [((at - low) / width, f"{value:.4g}") for at, value in ends]


def _style(axes: Axes) -> None:
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(colors=INK, length=0)
