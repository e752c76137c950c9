"""The report's section on whether predictions are right as often as their probabilities say."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainjob.evaluation.calibration import BINS, Bin, Calibration, calibration
from trainjob.evaluation.mistakes import is_wrong
from trainjob.formatting import count, percent
from trainjob.report.charts import INK, SERIES, STYLE, Drawing, inline_svg, small_figure
from trainjob.report.held_out import HeldOut

HEADINGS = ("Probability", "Rows", "Mean probability", "Right", "95% interval")


@dataclass(frozen=True)
class ReliabilityView:
    """The content of the section."""

    pictures: list[Drawing]
    sentences: list[str]
    table: list[tuple[str, ...]]
    """A line for each bin that has rows, with a cell for each of HEADINGS."""


def reliability_view(held: HeldOut) -> ReliabilityView:
    found = calibration(held.probability, ~is_wrong(held.table))
    bins = [each for each in found.bins if each.rows]
    return ReliabilityView(
        [_diagram(bins), _histogram(bins)], _sentences(found, held.set_name, len(held.table)), _table(bins)
    )


def _sentences(found: Calibration, set_name: str, rows: int) -> list[str]:
    average = (
        f"On {count(rows)} {set_name} rows, predictions have a probability of {percent(found.probability)} on average, "
        f"and {percent(found.accuracy)} of them are right"
    )
    return [
        f"{average}: the probabilities are {found.bias}."
        if found.bias
        else f"{average}; chance explains the difference.",
        f"The expected calibration error (ECE) is {percent(found.error)}, over {BINS} bins of equal width. If every "
        f"probability were true, chance alone would make about {percent(found.error_by_chance)} on this many rows.",
    ]


def _table(bins: Sequence[Bin]) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.low:.0%} to {each.high:.0%}",
            count(each.rows),
            percent(each.probability),
            percent(each.accuracy),
            f"{percent(each.accuracy_low)} to {percent(each.accuracy_high)}",
        )
        for each in bins
    ]


def _diagram(bins: Sequence[Bin]) -> Drawing:
    """Accuracy over probability, bin by bin, and the diagonal on which both are equal."""
    start, x = bins[0].low, [each.probability for each in bins]
    with rc_context(STYLE):
        figure, axes = _figure(start)
        axes.plot([start, 1], [start, 1], color=INK, linewidth=0.9, linestyle=":")
        axes.vlines(
            x, [each.accuracy_low for each in bins], [each.accuracy_high for each in bins], SERIES[0], linewidth=1.2
        )
        axes.plot(x, [each.accuracy for each in bins], color=SERIES[0], linewidth=1.4, marker="o", markersize=3.5)
        axes.set_ylim(0, 1.03)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        svg = inline_svg(figure, "reliability")
    values = "; ".join(f"{percent(each.accuracy)} at {percent(each.probability)}" for each in bins)
    return Drawing("Predictions that are right, by their probability", svg, f"Right predictions: {values}.")


def _histogram(bins: Sequence[Bin]) -> Drawing:
    with rc_context(STYLE):
        figure, axes = _figure(bins[0].low)
        middles = [(each.low + each.high) / 2 for each in bins]
        axes.bar(middles, [each.rows for each in bins], width=0.9 / BINS, color=SERIES[0])
        for middle, each in zip(middles, bins, strict=True):
            axes.annotate(
                short_count(each.rows), (middle, each.rows), (0, 2), textcoords="offset points", ha="center", color=INK
            )
        axes.set_ylim(0, 1.1 * max(each.rows for each in bins))
        axes.set_yticks([])
        svg = inline_svg(figure, "confidence")
    values = "; ".join(f"{count(each.rows)} at {each.low:.0%} to {each.high:.0%}" for each in bins)
    return Drawing("Rows, by the probability of their prediction", svg, f"Rows: {values}.")


def _figure(start: float) -> tuple[Figure, Axes]:
    figure, axes = small_figure()
    axes.tick_params(axis="x", pad=7)
    axes.set_xlim(start, 1.01)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("probability of the prediction", color=INK)
    return figure, axes


def short_count(rows: int) -> str:
    """A count in at most five characters: 9,876, 98k, 9.9M."""
    if rows < 10_000:
        return count(rows)
    return f"{rows / 1e3:.0f}k" if rows < 1e6 else f"{rows / 1e6:.1f}M"
