"""The report's section on how much a run's model relies on each column of a table."""

from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.figure import Figure

from trainjob.evaluation.estimates import ScoreEstimates
from trainjob.formatting import count, shortened
from trainjob.report.charts import GRID, INK, SERIES, STYLE, Drawing, inline_svg, tick
from trainjob.runs.comparison import ColumnImportance, Comparison

MAX_COLUMNS_DRAWN = 20
CORRELATED = (
    "Correlated columns may each seem unimportant, because the model still has the others when one is shuffled. This "
    "measures what the model relies on, not how strongly a column is related to the label."
)


@dataclass(frozen=True)
class ImportanceView:
    """The values that the template shows."""

    headings: tuple[str, str]
    table: list[tuple[str, str]]
    """A line for each column, with a cell for each heading."""
    pictures: list[Drawing]
    sentences: list[str]


def importance_view(comparison: Comparison) -> ImportanceView | None:
    """None where no importance was computed, such as for texts and images."""
    found, model = comparison.importance, comparison.model
    if found is None:
        return None
    headings = ("Column", f"{model.main_name}, worse by")
    if found.error:
        return ImportanceView(headings, [], [], [f"The importance of the columns was not computed: {found.error}."])
    drawn = f", drawn at random of {count(comparison.of_rows)}" if found.rows < comparison.of_rows else ""
    how = (
        f"How much worse {model.main_name} becomes when the cells of one column are shuffled: the mean of "
        f"{found.repeats} shuffles, on {count(found.rows)} {comparison.set_name} rows{drawn}; in brackets the mean of "
        "their 95% bootstrap intervals."
    )
    drawn_columns = found.columns[:MAX_COLUMNS_DRAWN]
    matters = any(each.drop.low or each.drop.high for each in drawn_columns)
    is_whole = len(drawn_columns) == len(found.columns)
    title = "All columns" if is_whole else f"The {len(drawn_columns)} most important columns"
    pictures = [_picture(title, drawn_columns, model)] if matters else []
    lines = [(each.column, each.drop.in_words("+")) for each in found.columns]
    return ImportanceView(headings, lines, pictures, [how, CORRELATED])


def _picture(title: str, columns: list[ColumnImportance], model: ScoreEstimates) -> Drawing:
    """Bars with intervals, the most important column first."""
    positions, drops = range(len(columns)), [each.drop for each in columns]
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 0.9 + 0.28 * len(columns)), facecolor="none", layout="constrained")
        axes = figure.add_subplot(facecolor="none")
        axes.barh(positions, [drop.value for drop in drops], color=SERIES[0], height=0.6)
        axes.hlines(positions, [drop.low for drop in drops], [drop.high for drop in drops], color=INK, linewidth=1.2)
        axes.axvline(0, color=GRID, linewidth=0.8)
        axes.set_yticks(positions, [shortened(each.column) for each in columns])
        axes.xaxis.set_major_formatter(tick)
        axes.set_xlabel(f"{model.main_name}, worse by", color=INK)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GRID)
        axes.tick_params(colors=INK, length=0)
        svg = inline_svg(figure, "importance")
    values = "; ".join(f"{each.column}: {each.drop.in_words('+')}" for each in columns)
    return Drawing(title, svg, f"{values}.")
