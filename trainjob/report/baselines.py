"""Compares the model with the baselines, for the report and the commands."""

from typing import NamedTuple

from trainjob.evaluation.estimates import Estimate
from trainjob.formatting import MISSING, count, score, title
from trainjob.report.charts import Chart, Series
from trainjob.runs.comparison import Baseline, Cascade, Comparison

RULE = "better or worse where the whole interval of the lead lies on one side of 0; otherwise, no difference is clear"


def headings(comparison: Comparison) -> tuple[str, ...]:
    """The headings of `comparison_table`."""
    model = comparison.model
    return ("Model", *model.headings, f"Lead of the model in {model.main_name}", "Verdict on the model")


def comparison_table(comparison: Comparison) -> list[tuple[str, ...]]:
    """A line for the model and for each baseline."""
    model = comparison.model
    return [
        ("model", *model.cells(), "", ""),
        *(_line(baseline, len(model.headings)) for baseline in comparison.baselines),
    ]


class BetterBaseline(NamedTuple):
    """A baseline that scored better than the model."""

    name: str
    is_clear: bool
    """Whether the difference is significant, given the number of rows."""
    sentence: str

    @property
    def in_brief(self) -> str:
        """A few words, for the first line of a run's summary."""
        return f"{self.name} is clearly better" if self.is_clear else f"{self.name} scored better, maybe by chance"


def better_baseline(comparison: Comparison) -> BetterBaseline | None:
    """The best of the baselines that are clearly better than the model; if there are none, the best of those that only
    scored better; None if none did."""
    leads = {each.name: each.lead for each in comparison.baselines if each.lead and each.lead.main.value < 0}
    clear = {name: lead for name, lead in leads.items() if lead.verdict == "worse"}
    found = clear or leads
    if not found:
        return None
    name = min(found, key=lambda name: found[name].main.value)
    by, rows = _reversed(found[name].main).in_words(), f"{count(comparison.rows)} {comparison.set_name} rows"
    if clear:
        sentence = f"Prefer {name} to this model: its {comparison.model.main_name} is better by {by} on {rows}."
    else:
        sentence = (
            f"{name} scored better than this model: its {comparison.model.main_name} is better by {by} on {rows}. The "
            f"interval includes 0, so it may be chance."
        )
    is_kept = any(each.variant for each in comparison.baselines if each.name == name)
    use = f" `trainjob predict RUN DATA --variant {name}` uses it; `evaluate` and `serve` take the same option."
    return BetterBaseline(name, bool(clear), sentence + (use if is_kept else ""))


PER_ROWS = 1000
CASCADE_HEADINGS = (
    "Sure from",
    f"Requests for {PER_ROWS:,} rows",
    f"Tokens for {PER_ROWS:,} rows",
    f"Cost of {PER_ROWS:,} rows",
    "Accuracy",
    "F1, macro average",
)
CASCADE_REMARK = (
    "The trained model answers where the probability of its prediction is at least that of the first column, the "
    "language model otherwise. `trainjob predict RUN DATA --cascade THRESHOLD` uses it."
)


def cascade_of(comparison: Comparison | None) -> Cascade | None:
    found = (each.cascade for each in (comparison.baselines if comparison else []))
    return next((cascade for cascade in found if cascade is not None), None)


def cascade_table(cascade: Cascade) -> list[tuple[str, ...]]:
    """A line for each threshold, with a cell for each of CASCADE_HEADINGS."""
    share = PER_ROWS / cascade.rows
    has_price = any(point.cost for point in cascade.points)
    return [
        (
            f"{point.threshold:g}",
            count(round(point.asked * share)),
            count(round(point.tokens * share)),
            f"{point.cost * share:.4f}" if has_price else MISSING,
            point.accuracy.in_words(),
            point.f1.in_words(),
        )
        for point in cascade.points
    ]


def cascade_chart(cascade: Cascade) -> Chart:
    asked = [PER_ROWS * point.asked / cascade.rows for point in cascade.points]
    return Chart(
        "Cascade with the language model",
        [
            Series("F1, macro average", asked, [point.f1.value for point in cascade.points]),
            Series("accuracy", asked, [point.accuracy.value for point in cascade.points]),
        ],
        x_label=f"requests for {PER_ROWS:,} rows",
    )


def remarks(comparison: Comparison, unit: str) -> list[str]:
    """Sentences that belong under the table. `unit` is that of the errors."""
    drawn = f", drawn at random of {count(comparison.of_rows)}" if comparison.rows < comparison.of_rows else ""
    sentences = [
        f"On {count(comparison.rows)} {comparison.set_name} rows{drawn}; in brackets 95% bootstrap intervals. The "
        f"model is called {RULE}."
    ]
    if errors := [title(name) for name in comparison.model.errors]:
        sentences.append(f"{' and '.join(errors)} are in {unit}.")
    if comparison.set_name == "validation":
        sentences.append("There is no test set: the best checkpoint was chosen by these rows, which favors the model.")
    for baseline in comparison.baselines:
        sentences += [f"{baseline.name}: {note}." for note in baseline.notes]
        if baseline.error:
            sentences.append(f"{baseline.name} could not be computed: {baseline.error}")
    return sentences


def in_brief(baseline: Baseline) -> str:
    """A baseline on one line."""
    if baseline.standing is None or baseline.lead is None:
        return f"could not be computed: {' '.join(baseline.error.split())}"
    ahead, verdict = baseline.lead.main, baseline.lead.verdict
    if verdict == "worse":
        ahead = _reversed(ahead)
    if verdict == "no clear difference":
        difference = f"no clear difference from the model's: {ahead.in_words('+')}"
    else:
        difference = f"the model is {verdict} by {ahead.in_words()}"
    return f"{baseline.standing.main_name} {score(baseline.standing.main.value)}; {difference}"


def _reversed(lead: Estimate) -> Estimate:
    """The lead of the second of two models over the first."""
    return Estimate(value=-lead.value, low=-lead.high, high=-lead.low)


def _line(baseline: Baseline, scores: int) -> tuple[str, ...]:
    if baseline.standing is None or baseline.lead is None:
        return (baseline.name, *[MISSING] * (scores + 2))
    lead = baseline.lead
    return (baseline.name, *baseline.standing.cells(), lead.main.in_words("+"), lead.verdict)
