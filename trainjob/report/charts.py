"""The charts of a run as SVG, whose colors are CSS variables (`--ink`, `--grid`, `--series-1` …)."""

import io
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from trainjob.errors import listed
from trainjob.formatting import capitalized, plain_number, readable
from trainjob.runs.history import KEYS, REPORTED_EPOCH

Record = dict[str, Any]

MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼"}
"""The marker that matplotlib draws for each series of a chart, and the character that the legend shows for it."""
MAX_POINTS, MAX_MARKERS = 400, 20
MAX_DRAWN = 1e300
"""The axes of larger values, or of NaN, cannot be computed."""
PACE = ("learning_rate", "samples_per_second", "tokens_per_second", "padding")
NOT_METRICS = {*KEYS, "seconds", REPORTED_EPOCH, *PACE}
MAX_METRICS = 40
"""The first metrics that are reported are drawn and listed, up to this many."""

INK, GRID = "#000001", "#000002"
SERIES = [f"#00000{digit}" for digit in range(3, 3 + len(MARKERS))]
COLORS = {INK: "ink-2", GRID: "grid"} | {color: f"series-{n}" for n, color in enumerate(SERIES, start=1)}
"""The CSS variable that takes the place of each color that matplotlib draws with."""

STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "trainjob", "font.size": 8.5, "text.parse_math": False}


class Drawing(NamedTuple):
    """A figure other than a Chart."""

    title: str
    svg: str
    """An `<svg>` element."""
    description: str
    """A text alternative for people who cannot see it."""


@dataclass(frozen=True)
class Series:
    """One curve: finite values `y` at the optimizer steps `x`."""

    name: str
    x: list[float]
    y: list[float]
    marked: bool = True
    """Whether each point has a marker: points of validations do, points of steps do not."""
    unsmoothed: list[float] | None = None
    """The values before smoothing, drawn faintly behind `y`."""

    def symbol(self, index: int) -> str:
        """The character that the legend shows for this series, which is number `index`, from 0, of its chart."""
        return list(MARKERS.values())[index] if self.marked else "—"


@dataclass(frozen=True)
class Chart:
    """Curves that share their axes."""

    title: str
    series: list[Series]
    from_zero: bool = False
    x_label: str = ""
    """The label of the x axis; empty where it shows the course of training."""
    mark: float | None = None
    """The position of the dotted line on the x axis; None for the best checkpoint."""

    @property
    def needs_legend(self) -> bool:
        """Whether the chart needs a legend besides its title."""
        return [series.name.lower() for series in self.series] != [self.title.lower()]


def metric_names(epochs: Sequence[Record]) -> list[str]:
    """The numeric metrics that any epoch reported, in the order of their first report."""
    return list(
        dict.fromkeys(
            name for row in epochs for name, value in row.items() if name not in NOT_METRICS and _is_number(value)
        )
    )


def remarks(metrics: Sequence[str], validated: Sequence[Record]) -> list[str]:
    """Sentences about the values of these metrics that the charts leave out."""
    shown = metrics[:MAX_METRICS]
    sentences: list[str] = []
    if len(metrics) > len(shown):
        sentences.append(
            f"{len(shown)} of {len(metrics):,} metrics are shown here; metrics.jsonl and TensorBoard's files have all."
        )
    values = {name: [row[name] for row in validated if _is_number(row.get(name))] for name in shown}
    counts = {name: sum(not _fits(value) for value in some) for name, some in values.items()}
    if gaps := [f"{name} ({count} of {len(values[name])} values)" for name, count in counts.items() if count]:
        sentences.append(f"Not drawn, since they are NaN, infinite or beyond {MAX_DRAWN:g}: {listed(gaps)}.")
    return sentences


def charts(
    steps: Sequence[Record], validated: Sequence[Record], errors: Sequence[str] = (), unit: str = ""
) -> list[Chart]:
    """The charts of a run's records: losses, the metrics called `errors`, which have this unit, metrics between 0 and
    1, each other metric, learning rate and speed."""
    names = [name for name in metric_names(validated)[:MAX_METRICS] if name not in errors]
    reported = [series_of(validated, name) for name in names]
    losses = [series for series in reported if series.name.endswith("loss")]
    fractions = [series for series in reported if series not in losses and all(0 <= y <= 1 for y in series.y)]
    others = [series for series in reported if series not in losses and series not in fractions]
    progress = [series_of(steps or validated, name, marked=not steps) for name in PACE]
    return [
        *grouped("Loss", [smoothed(series_of(steps, "loss")), *losses]),
        *grouped(f"Errors, in {unit}", [series_of(validated, name) for name in errors]),
        *grouped("Metrics" if len(fractions) > 1 else "", fractions),
        *(chart for series in others for chart in grouped("", [series])),
        *(chart for series in progress for chart in grouped("", [series], from_zero=True)),
    ]


def describe(chart: Chart) -> str:
    """A text alternative to the chart for people who cannot see it."""
    curves = "; ".join(f"{s.name} from {s.y[0]:.4g} to {s.y[-1]:.4g}" for s in chart.series)
    return f"{chart.title} over {chart.x_label or 'the course of training'}: {curves}."


def draw(chart: Chart, epochs: Sequence[Record], best_step: int | None, prefix: str) -> str:
    """The chart as an `<svg>` element whose ids start with `prefix`; the best checkpoint's step is a dotted line."""
    with rc_context(STYLE):
        figure, axes = small_figure()
        for color, marker, series in zip(SERIES, MARKERS, chart.series, strict=False):
            _plot(axes, series, color, marker)
        if (mark := chart.mark if best_step is None else best_step) is not None:
            axes.axvline(mark, color=INK, linewidth=0.9, linestyle=":")
        _style_axes(axes, chart, epochs)
        return inline_svg(figure, prefix)


def _plot(axes: Axes, series: Series, color: str, marker: str) -> None:
    """Draws at most MAX_POINTS evenly spaced points and MAX_MARKERS markers."""
    keep = slice(None, None, math.ceil(len(series.x) / MAX_POINTS))
    x, y = series.x[keep], series.y[keep]
    if series.unsmoothed:
        axes.plot(x, series.unsmoothed[keep], color=color, alpha=0.25, linewidth=0.7)
    marker, every = (marker if series.marked else ""), math.ceil(len(x) / MAX_MARKERS)
    axes.plot(x, y, color=color, linewidth=1.4, marker=marker, markersize=3.5, markevery=every)


def small_figure() -> tuple[Figure, Axes]:
    """A figure of the size of a chart. Its axes have horizontal grid lines and no frame but the line at the bottom."""
    figure = Figure(figsize=(4.9, 2.5), facecolor="none", layout="constrained")
    axes = figure.add_subplot(facecolor="none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0)
    return figure, axes


def _style_axes(axes: Axes, chart: Chart, epochs: Sequence[Record]) -> None:
    axes.yaxis.set_major_formatter(tick)
    axes.xaxis.set_major_formatter(tick)
    axes.locator_params(axis="y", nbins=6)
    axes.set_xlabel(chart.x_label or ("epoch" if epochs else "step"), color=INK)
    if epochs:
        shown = epochs[:: math.ceil(len(epochs) / 10)]
        axes.set_xticks([row["step"] for row in shown], [str(row["epoch"]) for row in shown])
    if chart.from_zero:
        axes.set_ylim(bottom=0)


def tick(value: float, _: object) -> str:
    """The label of a value on an axis."""
    return plain_number(value)


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an `<svg>` element whose ids start with `prefix`, its colors as CSS variables."""
    text = io.StringIO()
    with warnings.catch_warnings():
        # The SVG holds text, which the reader's own fonts draw: matplotlib's need not have its characters.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        FigureCanvasSVG(figure).print_svg(text, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return re.sub("|".join(COLORS), lambda match: f"var(--{COLORS[match[0]]})", svg)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(value: float) -> bool:
    return abs(value) <= MAX_DRAWN


def series_of(rows: Iterable[Record], name: str, *, marked: bool = True) -> Series:
    """The values of one name in the records that can be drawn."""
    points = [(row["step"], row[name]) for row in rows if _is_number(row.get(name)) and _fits(row[name])]
    return Series(readable(name), [x for x, _ in points], [y for _, y in points], marked)


def grouped(title: str, series: Sequence[Series], *, from_zero: bool = False) -> list[Chart]:
    """Charts of the series that have points, each with at most as many series as there are markers.

    Without a `title`, the first series of a chart gives it. Several charts of one title are numbered.
    """
    drawn = [each for each in series if each.y]
    groups = [drawn[start : start + len(MARKERS)] for start in range(0, len(drawn), len(MARKERS))]
    found: list[Chart] = []
    for number, group in enumerate(groups, start=1):
        name = title or capitalized(group[0].name)
        numbered = f"{name} ({number} of {len(groups)})" if title and len(groups) > 1 else name
        found.append(Chart(numbered, group, from_zero))
    return found


def smoothed(series: Series) -> Series:
    """A centered moving average over a fiftieth of the points, and over fewer at both ends."""
    if not series.y:
        return series
    window = np.ones(2 * (len(series.y) // 100) + 1)
    averages = np.convolve(series.y, window, "same") / np.convolve(np.ones(len(series.y)), window, "same")
    return Series("training, smoothed", series.x, averages.tolist(), marked=False, unsmoothed=series.y)
