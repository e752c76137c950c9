"""Compares the model with the baselines, for the report and the commands."""

from trainjob.evaluation.estimates import Estimate
from trainjob.formatting import MISSING, count
from trainjob.report.charts import Chart, Series
from trainjob.runs.comparison import Baseline, Cascade, Comparison

RULE = "better or worse where the whole interval of the lead lies on one side of 0, not clearly different otherwise"


def headings(comparison: Comparison) -> tuple[str, ...]:
    """The headings of `comparison_table`."""
    model = comparison.model
    return ("Model", *model.headings, f"Lead of the model in {model.main}", "The model is")


def comparison_table(comparison: Comparison) -> list[tuple[str, ...]]:
    """A line for the model and for each baseline."""
    model = comparison.model
    return [
        ("model", *model.cells(), "", ""),
        *(_line(baseline, len(model.headings)) for baseline in comparison.baselines),
    ]


def better_baseline(comparison: Comparison) -> str:
    """A sentence about the best of the baselines that are clearly better than the model; empty if none is."""
    leads = {each.name: each.lead.main for each in comparison.baselines if each.lead and each.lead.verdict == "worse"}
    if not leads:
        return ""
    name = min(leads, key=lambda name: leads[name].value)
    lead = Estimate(value=-leads[name].value, low=-leads[name].high, high=-leads[name].low)
    is_kept = any(each.variant for each in comparison.baselines if each.name == name)
    use = f" `trainjob predict RUN DATA --variant {name}` uses it; `evaluate` and `serve` take the same option."
    return (
        f"Prefer {name} to this model: its {comparison.model.main} is better by {lead.in_words()} on "
        f"{count(comparison.rows)} {comparison.set_name} rows.{use if is_kept else ''}"
    )


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


def remarks(comparison: Comparison) -> list[str]:
    """Sentences that belong under the table."""
    drawn = f", drawn at random of {count(comparison.of_rows)}" if comparison.rows < comparison.of_rows else ""
    sentences = [
        f"On {count(comparison.rows)} {comparison.set_name} rows{drawn}; in brackets 95 % bootstrap intervals. The "
        f"model is called {RULE}."
    ]
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
        ahead = Estimate(value=-ahead.value, low=-ahead.high, high=-ahead.low)
    if verdict == "no clear difference":
        difference = f"no clear difference from the model's: {ahead.in_words('+.4f')}"
    else:
        difference = f"the model is {verdict} by {ahead.in_words()}"
    return f"{baseline.standing.main} {baseline.standing.main_value:.4f}; {difference}"


def _line(baseline: Baseline, scores: int) -> tuple[str, ...]:
    if baseline.standing is None or baseline.lead is None:
        return (baseline.name, *[MISSING] * (scores + 2))
    lead = baseline.lead
    return (baseline.name, *baseline.standing.cells(), lead.main.in_words("+.4f"), lead.verdict_in_words)
