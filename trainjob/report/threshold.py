"""The report's section on two classes: precision and recall, and the best threshold by the user's metric."""

from dataclasses import dataclass

import numpy as np

from trainjob.evaluation.estimates import Estimate, verdict_of
from trainjob.evaluation.paired import lead
from trainjob.evaluation.thresholds import (
    USUAL,
    Metric,
    best_threshold,
    precision_recall,
    value_of,
    values_at,
)
from trainjob.formatting import capitalized, count, readable, score
from trainjob.report.charts import Chart, Series
from trainjob.report.held_out import HeldOut

NAMES: dict[Metric, str] = {
    "accuracy": "accuracy",
    "precision": "precision (macro average)",
    "recall": "recall (macro average)",
    "f1": "F1 (macro average)",
}
POINTS = 200
"""The most points that are drawn of a curve."""


@dataclass(frozen=True)
class ThresholdView:
    """The content of the section."""

    sentences: list[str]
    headings: list[str]
    table: list[tuple[str, ...]]
    """A line for each threshold, with a cell for each heading; empty where none is chosen."""
    charts: list[Chart]
    remarks: list[str]


@dataclass(frozen=True)
class Binary:
    """The rows of a set with two classes; the second one is positive."""

    set_name: str
    classes: list[str]
    is_positive: np.ndarray
    score: np.ndarray
    """The probability of the positive class, float64 [n]."""
    predicted: np.ndarray
    """The predictions, bool [n]: True for the positive class."""

    @property
    def positive(self) -> str:
        return self.classes[1]

    @property
    def has_both(self) -> bool:
        return 0 < self.is_positive.sum() < len(self.is_positive)


def binary(held: HeldOut) -> Binary | None:
    """The rows as those of two classes. None for another number of classes and for runs of earlier versions, which did
    not keep the probability of each class."""
    if len(held.classes) != 2:
        return None
    scores = held.probability_of(held.classes[1])
    if scores is None:
        return None
    return Binary(held.set_name, held.classes, held.labels == 1, scores, held.predicted == 1)


def threshold_view(rows: Binary, validated: Binary | None, checkpoints_metric: str) -> ThresholdView:
    """The section for the rows that the model is judged by. Only the validation rows choose the threshold."""
    curves = [_curve(rows)] if rows.has_both else []
    if validated is None or not validated.has_both:
        return ThresholdView([_no_choice(validated, rows)], [], [], curves, [])
    metric = _metric(checkpoints_metric)
    threshold = best_threshold(metric, validated.is_positive, validated.score)
    return ThresholdView(
        _sentences(rows, validated, threshold, metric),
        *_table(rows, validated, threshold, metric),
        [*curves, _metric_by_threshold(rows, validated, metric, threshold)],
        _remarks(rows, threshold, checkpoints_metric),
    )


def _metric(checkpoints_metric: str) -> Metric:
    """The checkpoints' metric; F1 if that is the loss, which does not depend on a threshold."""
    name = checkpoints_metric.removeprefix("validation_")
    return next((metric for metric in NAMES if metric == name), "f1")


def _no_choice(validated: Binary | None, rows: Binary) -> str:
    if validated is None:
        return (
            "No threshold is chosen: this run has not kept what the model predicts for the validation rows, and the "
            f"{rows.set_name} rows may only judge a threshold."
        )
    return f"No threshold is chosen: all validation rows are {validated.classes[int(validated.is_positive.any())]}."


def _sentences(rows: Binary, validated: Binary, threshold: float, metric: Metric) -> list[str]:
    usual = f"A row is predicted as {rows.positive} where the probability of {rows.positive} is at least {USUAL}."
    on = f"On the {count(len(validated.score))} validation rows"
    if threshold == USUAL:
        return [f"{usual} {on}, no other threshold has a higher {NAMES[metric]}."]
    sentences = [f"{usual} {on}, {threshold:g} has the highest {NAMES[metric]}."]
    if rows.set_name == validated.set_name:
        return [
            *sentences,
            "There is no test set: the threshold is judged on the rows that it was chosen by, which favors it.",
        ]
    if (difference := _difference(rows, threshold, metric)) is None:
        return sentences
    verdict = verdict_of(difference)
    advice = "" if verdict == "better" else f"; {USUAL} will do"
    return [
        *sentences,
        f"On the {rows.set_name} rows, its lead over {USUAL} is {difference.in_words('+')}: {verdict}{advice}.",
    ]


def _difference(rows: Binary, threshold: float, metric: Metric) -> Estimate | None:
    """The lead of the threshold over the usual one; None for metrics without an interval."""
    if metric not in ("f1", "accuracy"):
        return None
    labels, first, second = (
        each.astype(np.int64) for each in (rows.is_positive, rows.score >= threshold, rows.predicted)
    )
    both = lead(labels, first, second, 2)
    return both.f1 if metric == "f1" else both.accuracy


def _table(
    rows: Binary, validated: Binary, threshold: float, metric: Metric
) -> tuple[list[str], list[tuple[str, ...]]]:
    sets, name = _sets(rows, validated), NAMES[metric]
    headings = [
        "Threshold",
        *(f"{capitalized(name)}, {each.set_name}" for each in sets),
        f"Precision of {rows.positive}, {rows.set_name}",
        f"Recall of {rows.positive}, {rows.set_name}",
    ]

    def line(title: str, predicted: list[np.ndarray]) -> tuple[str, ...]:
        values = [value_of(metric, each.is_positive, some) for each, some in zip(sets, predicted, strict=True)]
        hits = float(np.sum(predicted[0] & rows.is_positive))
        of_predicted, of_positive = hits / max(predicted[0].sum(), 1), hits / max(rows.is_positive.sum(), 1)
        return (title, *map(score, values), score(float(of_predicted)), score(float(of_positive)))

    lines = [line(f"{USUAL}", [each.predicted for each in sets])]
    if threshold != USUAL:
        lines.append(line(f"{threshold:g} (chosen)", [each.score >= threshold for each in sets]))
    return headings, lines


def _sets(rows: Binary, validated: Binary) -> list[Binary]:
    """The sets to show; one where there is no test set."""
    return [validated] if rows.set_name == validated.set_name else [rows, validated]


def _curve(rows: Binary) -> Chart:
    """Precision over recall with either class as the positive one."""
    sides = [(rows.classes[1], rows.is_positive, rows.score), (rows.classes[0], ~rows.is_positive, 1 - rows.score)]
    series: list[Series] = []
    for name, is_positive, scores in sides:
        curve = precision_recall(is_positive, scores)
        kept = np.unique(np.linspace(0, len(curve.recall) - 1, POINTS).round().astype(np.int64))
        recall, precision = curve.recall[kept], curve.precision[kept]
        series.append(
            Series(
                f"{name} as the positive class: average precision {curve.average_precision:.4f}, "
                f"by guessing {is_positive.mean():.4f}",
                np.stack([np.append(0, recall[:-1]), recall], axis=1).reshape(-1).tolist(),
                precision.repeat(2).tolist(),
                marked=False,
            )
        )
    return Chart(f"Precision by recall, {rows.set_name}", series, x_label="recall")


def _metric_by_threshold(rows: Binary, validated: Binary, metric: Metric, threshold: float) -> Chart:
    thresholds = np.linspace(0, 1, POINTS + 1)
    series = [
        Series(
            each.set_name,
            thresholds.tolist(),
            values_at(metric, each.is_positive, each.score, thresholds).tolist(),
            marked=False,
        )
        for each in _sets(rows, validated)
    ]
    return Chart(f"{capitalized(NAMES[metric])}, by threshold", series, x_label="threshold", mark=threshold)


def _remarks(rows: Binary, threshold: float, checkpoints_metric: str) -> list[str]:
    sentences: list[str] = []
    if _metric(checkpoints_metric) != checkpoints_metric.removeprefix("validation_"):
        sentences.append(
            f"The metric of the checkpoints, {readable(checkpoints_metric)}, does not depend on a threshold: "
            f"{NAMES['f1']} chooses it instead."
        )
    if threshold != USUAL:
        sentences.append(
            f"`trainjob predict` uses {USUAL}. In Python, `predictor.predict_proba(rows)[:, 1] >= {threshold:g}` "
            f"selects the rows that are {rows.positive}."
        )
    return sentences
