"""The curves of a run, drawn as SVG whose colours are CSS variables (`--ink`, `--grid`, `--series-1` …)."""

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from trainjob.report.words import spoken, title

Record = dict[str, Any]

MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼"}
"""matplotlib's marker of each series of a chart and the character that stands for it in the legend."""
MAX_POINTS = 400
NOT_METRICS = {"kind", "step", "epoch", "time", "seconds", "learning_rate", "samples_per_second"}

INK, GRID = "#000001", "#000002"
SERIES = [f"#00000{digit}" for digit in range(3, 3 + len(MARKERS))]
COLOURS = {INK: "ink-2", GRID: "grid"} | {colour: f"series-{n}" for n, colour in enumerate(SERIES, start=1)}
"""Colours that are drawn with, each a stand-in for a CSS variable."""

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "trainjob", "font.size": 8.5, "text.parse_math": False}


@dataclass(frozen=True)
class Series:
    """One curve: finite values `y` at the optimizer steps `x`."""

    name: str
    x: list[float]
    y: list[float]
    marked: bool = True
    """Whether each point has a marker: few points, one for each epoch."""
    faint: list[float] | None = None
    """What `y` was smoothed from, drawn behind it."""

    def symbol(self, place: int) -> str:
        """What stands in the legend for the series that is number `place` of its chart, from 0."""
        return list(MARKERS.values())[place] if self.marked else "—"


@dataclass(frozen=True)
class Chart:
    """Curves that share their axes."""

    title: str
    series: list[Series]
    from_zero: bool = False

    @property
    def needs_legend(self) -> bool:
        """Whether the title leaves anything to be said."""
        return [series.name.lower() for series in self.series] != [self.title.lower()]


def metric_names(epochs: Sequence[Record]) -> list[str]:
    """The numeric metrics that any epoch reported, in the order of their first report."""
    return list(
        dict.fromkeys(name for row in epochs for name, value in row.items() if name not in NOT_METRICS and _is_number(value))
    )


def charts(steps: Sequence[Record], epochs: Sequence[Record]) -> list[Chart]:
    """The charts that the records of a run give; those without a single finite value are left out."""
    names = metric_names(epochs)
    losses = [name for name in names if name.endswith("loss")]
    others = [name for name in names if name not in losses]
    shares = [name for name in others if all(0 <= y <= 1 for y in _series(epochs, name).y)]
    others = [name for name in others if name not in shares]
    found = [Chart("Loss", [_smoothed(_series(steps, "loss"), "training, smoothed"), *_per_epoch(epochs, losses)])]
    groups = [shares[start : start + len(MARKERS)] for start in range(0, len(shares), len(MARKERS))]
    for group in groups + [[name] for name in others]:
        found.append(Chart("Metrics" if len(group) > 1 else title(group[0]), list(_per_epoch(epochs, group))))
    for name in ("learning_rate", "samples_per_second"):
        curve = _series(steps, name) if any(name in row for row in steps) else _series(epochs, name)
        found.append(Chart(title(name), [_thinned(curve)], from_zero=True))
    drawn = (Chart(c.title, [s for s in c.series if s.y], c.from_zero) for c in found)
    return [chart for chart in drawn if chart.series]


def describe(chart: Chart) -> str:
    """The chart in words, for those who cannot see it."""
    curves = "; ".join(f"{s.name} from {s.y[0]:.4g} to {s.y[-1]:.4g}" for s in chart.series)
    return f"{chart.title} over the course of training: {curves}."


def draw(chart: Chart, epochs: Sequence[Record], best_step: int | None, prefix: str) -> str:
    """The chart as an `<svg>` element whose ids start with `prefix`; the best checkpoint's step is a dotted line."""
    with rc_context(STYLE):
        figure = Figure(figsize=(4.9, 2.5), facecolor="none", layout="constrained")
        axes = figure.add_subplot(facecolor="none")
        for colour, marker, series in zip(SERIES, MARKERS, chart.series, strict=False):
            if series.faint:
                axes.plot(series.x, series.faint, color=colour, alpha=0.25, linewidth=0.7)
            axes.plot(
                series.x, series.y, color=colour, linewidth=1.4, marker=marker if series.marked else "", markersize=3.5
            )
        if best_step is not None:
            axes.axvline(best_step, color=INK, linewidth=0.9, linestyle=":")
        _dress(axes, chart, epochs)
        return _inline_svg(figure, prefix)


def _dress(axes: Axes, chart: Chart, epochs: Sequence[Record]) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.locator_params(axis="y", nbins=6)
    axes.set_xlabel("epoch" if epochs else "step", color=INK)
    if epochs:
        shown = epochs[:: math.ceil(len(epochs) / 10)]
        axes.set_xticks([row["step"] for row in shown], [str(row["epoch"]) for row in shown])
    if chart.from_zero:
        axes.set_ylim(bottom=0)


def _inline_svg(figure: Figure, prefix: str) -> str:
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return re.sub("|".join(COLOURS), lambda match: f"var(--{COLOURS[match[0]]})", svg)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _series(rows: Iterable[Record], name: str) -> Series:
    points = [(row["step"], row[name]) for row in rows if _is_number(row.get(name)) and math.isfinite(row[name])]
    return Series(spoken(name), [x for x, _ in points], [y for _, y in points])


def _per_epoch(epochs: Sequence[Record], names: Iterable[str]) -> Iterable[Series]:
    return (_series(epochs, name) for name in names)


def _smoothed(series: Series, name: str) -> Series:
    """A centred moving average over a fiftieth of the points; at the ends over those that there are."""
    if not series.y:
        return series
    window = np.ones(2 * (len(series.y) // 100) + 1)
    averages = np.convolve(series.y, window, "same") / np.convolve(np.ones(len(series.y)), window, "same")
    return _thinned(Series(name, series.x, averages.tolist(), faint=series.y))


def _thinned(series: Series) -> Series:
    """At most MAX_POINTS points, evenly picked, without markers."""
    keep = slice(None, None, math.ceil(len(series.x) / MAX_POINTS) or 1)
    faint = series.faint[keep] if series.faint else None
    return Series(series.name, series.x[keep], series.y[keep], marked=False, faint=faint)
