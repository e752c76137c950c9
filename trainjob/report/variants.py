"""A run's smaller models beside its own: a table and a picture."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainjob.formatting import count, percent
from trainjob.report.charts import GRID, INK, SERIES, STYLE, inline_svg
from trainjob.runs.variants import Variant, Variants

HEADINGS = (
    "Model",
    "Weights",
    "One row, median",
    "One row, 99 of 100",
    "Rows a second",
    "Memory",
    "F1, macro average",
    "Agreement",
)


def variants_table(variants: Variants) -> list[tuple[str, ...]]:
    """A line for each model, with a cell for each of HEADINGS."""
    return [
        (
            each.name,
            mebibytes(each.size),
            milliseconds(each.latency_p50),
            milliseconds(each.latency_p99),
            count(round(each.rows_per_second)),
            mebibytes(each.memory),
            each.f1.in_words(),
            percent(each.agreement),
        )
        for each in variants.variants
    ]


def remark(variants: Variants) -> str:
    """The remark below the table."""
    drawn = f", drawn at random of {count(variants.of_rows)}" if variants.rows < variants.of_rows else ""
    return (
        f"On {count(variants.rows)} {variants.set_name} rows{drawn}; in brackets 95% bootstrap intervals. One row at "
        f"a time on one thread; rows a second in batches of {variants.batch_size} on {variants.threads} threads of "
        f"{variants.cpu or 'a processor'}. Memory: the most that a process has which loads the model and predicts. "
        "Agreement: rows for which it predicts what the original does."
    )


@dataclass(frozen=True)
class _Panel:
    title: str
    value: Callable[[Variant], float]
    shown: Callable[[Variant], str]
    interval: Callable[[Variant], tuple[float, float]] | None = None


_PANELS = (
    _Panel("Weights", lambda each: each.size, lambda each: mebibytes(each.size)),
    _Panel(
        "One row: median, and to 99 of 100",
        lambda each: each.latency_p50,
        lambda each: milliseconds(each.latency_p50),
        lambda each: (each.latency_p50, each.latency_p99),
    ),
    _Panel("Rows a second", lambda each: each.rows_per_second, lambda each: count(round(each.rows_per_second))),
    _Panel("Memory", lambda each: each.memory, lambda each: mebibytes(each.memory)),
    _Panel(
        "F1, with its interval",
        lambda each: each.f1.value,
        lambda each: f"{each.f1.value:.4f}",
        lambda each: (each.f1.low, each.f1.high),
    ),
    _Panel("Agreement", lambda each: each.agreement, lambda each: percent(each.agreement)),
)


def variants_picture(variants: Variants) -> tuple[str, str]:
    """A bar chart for each measure, as an `<svg>` element, and its description for people who cannot see it."""
    models = variants.variants
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 0.8 + 0.5 * len(models)), facecolor="none", layout="constrained")
        for number, panel in enumerate(_PANELS, 1):
            axes = figure.add_subplot(2, math.ceil(len(_PANELS) / 2), number, facecolor="none")
            _draw(axes, panel, models)
        svg = inline_svg(figure, "variants")
    values = "; ".join(f"{each.name}: {', '.join(panel.shown(each) for panel in _PANELS)}" for each in models)
    return svg, f"{', '.join(panel.title for panel in _PANELS)} of each model. {values}."


def _draw(axes: Axes, panel: _Panel, models: list[Variant]) -> None:
    values = [panel.value(each) for each in models]
    colors = [SERIES[min(number, 1)] for number in range(len(models))]  # the original's, and the others'
    axes.barh(range(len(models)), values, color=colors, height=0.6)
    ends = values
    if panel.interval is not None:
        low, high = zip(*map(panel.interval, models), strict=True)
        axes.hlines(range(len(models)), low, high, color=INK, linewidth=1.2)
        ends = list(high)
    for number, (each, end) in enumerate(zip(models, ends, strict=True)):
        axes.annotate(panel.shown(each), (end, number), (4, 0), textcoords="offset points", va="center", color=INK)
    axes.set_title(panel.title, loc="left", fontsize=9, color=INK)
    axes.set_yticks(range(len(models)), [each.name for each in models])
    axes.set_xticks([])
    axes.set_xlim(0, 1.5 * max(*ends, 1e-12))
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(GRID)
    axes.tick_params(colors=INK, length=0)


def mebibytes(size: float) -> str:
    size /= 2**20
    return f"{size:.1f} MiB" if size < 100 else f"{size:,.0f} MiB"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"
