"""How the model compares with the baselines, as the report and the commands say it."""

from trainjob.evaluation.paired import Estimate, Lead
from trainjob.report.formatting import MISSING, count
from trainjob.runs.comparison import Baseline, Comparison

HEADINGS = ("Classifier", "Accuracy", "F1, macro average", "Lead of the model in F1", "McNemar's p", "The model is")


def comparison_table(comparison: Comparison) -> list[tuple[str, ...]]:
    """A line for the model and for each baseline, with a cell for each of HEADINGS."""
    model = comparison.model
    return [
        ("model", interval(model.accuracy), interval(model.f1), "", "", ""),
        *(_line(baseline) for baseline in comparison.baselines),
    ]


def remarks(comparison: Comparison) -> list[str]:
    """Sentences that belong under the table."""
    drawn = f", drawn at random of {count(comparison.of_rows)}" if comparison.rows < comparison.of_rows else ""
    said = [
        f"On {count(comparison.rows)} {comparison.set_name} rows{drawn}; in brackets 95 % bootstrap intervals. p: how "
        "probable it is that luck alone would divide so unevenly the rows that only one of both has right."
    ]
    if comparison.set_name == "validation":
        said.append("There is no test set: the best checkpoint was chosen by these rows, which favours the model.")
    for baseline in comparison.baselines:
        said += [f"{baseline.name}: {note}." for note in baseline.notes]
        if baseline.error:
            said.append(f"{baseline.name} could not be computed: {baseline.error}")
    return said


def in_brief(baseline: Baseline) -> str:
    """A baseline on one line."""
    if baseline.standing is None or baseline.lead is None:
        return f"could not be computed: {' '.join(baseline.error.split())}"
    lead = baseline.lead
    return (
        f"F1 {baseline.standing.f1.value:.4f}: the model leads by {interval(lead.f1, '+.4f')}, "
        f"{lead.verdict} (p {probability(lead.p)})"
    )


def _line(baseline: Baseline) -> tuple[str, ...]:
    if baseline.standing is None or baseline.lead is None:
        return (baseline.name, *[MISSING] * 5)
    standing, lead = baseline.standing, baseline.lead
    return (
        baseline.name,
        interval(standing.accuracy),
        interval(standing.f1),
        interval(lead.f1, "+.4f"),
        probability(lead.p),
        said_verdict(lead),
    )


def said_verdict(lead: Lead) -> str:
    """The verdict where "The model is" stands before it."""
    return "not surely better or worse" if lead.verdict == "may be luck" else lead.verdict


def interval(estimate: Estimate, form: str = ".4f") -> str:
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def probability(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"
