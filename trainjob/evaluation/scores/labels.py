"""The scores of a model that gives each row any number of labels."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.api import StrictModel
from trainjob.evaluation.estimates import Estimate, Lead
from trainjob.evaluation.label_estimates import LabelEstimates, LabelJudge, LabelLead, ratio
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.scores.base import WHEN_SCORED, Measure, Scores, Table, Worst, check_finite
from trainjob.evaluation.thresholds import USUAL, best_threshold, precision_recall
from trainjob.formatting import MISSING, count, percent, score

MAX_MATRIX_SIDE = 40
"""With more labels than this, the report shows the pairs that occur together most often but no matrix."""
MAX_LABELS_SHOWN = 100
"""With more labels, tables show those with the lowest F1, and pairs are not counted."""
MAX_PAIRS = 15
MIN_POSITIVES = 5
"""Validation rows that must have a label to choose its threshold; with fewer, it is one half."""


class LabelScores(StrictModel):
    """How well one label is predicted. Precision, recall and F1 are 0 where their denominator is 0."""

    name: str
    """Name of the label."""
    rows: int
    """Rows that have it."""
    predicted: int
    """Rows that get it."""
    threshold: float
    """A row gets the label if its probability is at least this; chosen on the validation rows by F1."""
    precision: float
    """Fraction of the rows that get it that have it."""
    recall: float
    """Fraction of the rows that have it that get it."""
    f1: float
    """Harmonic mean of precision and recall."""
    average_precision: float | None
    """Mean precision over all thresholds, weighted by the recall that each adds; None where no row has the label."""


class LabelPair(StrictModel):
    """Two labels that the same rows have."""

    first: str
    """Name of the one with fewer rows."""
    second: str
    """Name of the other one."""
    rows: int
    """Rows that have both."""
    predicted: int
    """Rows that get both."""
    share: float
    """Fraction of the first one's rows that have both."""


class LabelsScores(Scores):
    """How well a model does on a set of rows, each with any number of labels."""

    section: ClassVar[str] = "labels.html.j2"
    caution: ClassVar[str] = "It knows no other labels than these, and may give a row none of them."

    rows: int
    """Number of rows."""
    loss: float
    """Mean loss."""
    f1: Estimate
    """F1, the mean over labels."""
    micro_f1: Estimate
    """F1 of all labels of all rows together."""
    accuracy: Estimate
    """Fraction of rows all of whose labels are right."""
    precision: float
    """Precision, the mean over labels."""
    recall: float
    """Recall, the mean over labels."""
    average_precision: float
    """Average precision, the mean over the labels that rows of the set have."""
    without: int
    """Rows that have no label."""
    predicted_without: int
    """Rows that get no label."""
    per_label: list[LabelScores]
    """Scores of each label."""
    together: list[list[int]]
    """Rows that have both of two labels; empty for more than MAX_LABELS_SHOWN labels."""
    predicted_together: list[list[int]]
    """Rows that get both of two labels."""

    @property
    def purpose(self) -> str:
        return f"give each row any of {count(len(self.per_label))} labels"

    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Averages are over labels (macro)."""
        return {
            f"{set_name}_loss": self.loss,
            f"{set_name}_accuracy": self.accuracy.value,
            f"{set_name}_precision": self.precision,
            f"{set_name}_recall": self.recall,
            f"{set_name}_f1": self.f1.value,
            f"{set_name}_micro_f1": self.micro_f1.value,
            f"{set_name}_average_precision": self.average_precision,
        }

    def size(self) -> tuple[str, int]:
        return "rows", self.rows

    def missing_classes(self) -> list[str]:
        return [each.name for each in self.per_label if not each.rows]

    def measures(self) -> list[Measure]:
        return [
            Measure("f1", "macro F1", self.f1.value),
            Measure("f1", "micro F1", self.micro_f1.value),
            Measure("average_precision", "average precision", self.average_precision),
            Measure("accuracy", "all labels right", self.accuracy.value),
        ]

    def in_brief(self) -> str:
        scores = f"F1 {score(self.f1.value)} (macro), {score(self.micro_f1.value)} (micro)"
        return f"{scores}   average precision {score(self.average_precision)}   {count(self.rows)} rows"

    def headline(self) -> str:
        shown = ", ".join(
            f"{name} {cell}" for name, cell in zip(self.estimates.headings, self.estimates.cells(), strict=True)
        )
        others = f"average precision {score(self.average_precision)}, loss {self.loss:.4f}"
        return f"{count(self.rows)} rows: {shown}, {others}"

    def table(self) -> Table:
        return Table(
            ("label", "rows", "predicted", "threshold", "precision", "recall", "F1", "average precision"),
            [
                (
                    each.name,
                    count(each.rows),
                    count(each.predicted),
                    f"{each.threshold:.3f}",
                    *(f"{value:.4f}" for value in (each.precision, each.recall, each.f1)),
                    MISSING if each.average_precision is None else f"{each.average_precision:.4f}",
                )
                for each in self.per_label
            ],
        )

    def excerpt(self, set_name: str) -> Table:
        shown, lines = (
            self.shown_labels(),
            dict(zip((each.name for each in self.per_label), self.table().lines, strict=True)),
        )
        chosen = f" (the {len(shown)} with the lowest F1)" if len(shown) < len(self.per_label) else ""
        title = f"By label, on the {set_name} set{chosen}"
        return Table(self.table().headings, [lines[each.name] for each in shown], title=title)

    def tiles(self) -> list[tuple[str, str]]:
        return [
            ("Macro F1", score(self.f1.value)),
            ("Micro F1", score(self.micro_f1.value)),
            ("Average precision", score(self.average_precision)),
            ("All labels right", percent(self.accuracy.value)),
        ]

    def compared(self, lead: Lead | None) -> dict[str, str]:
        return super().compared(lead) | {"Average precision": score(self.average_precision)}

    @property
    def estimates(self) -> LabelEstimates:
        return LabelEstimates(f1=self.f1, micro_f1=self.micro_f1, accuracy=self.accuracy)

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> LabelJudge:
        names = {name for column in columns for each in column.to_pylist() for name in each}
        return LabelJudge(sorted(names))

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The rows with the most wrong labels."""
        judge = cls.judge_of([predictions["label"], predictions["prediction"]])
        is_wrong = judge.values(predictions["label"]) != judge.values(predictions["prediction"])
        wrong = is_wrong.sum(axis=1)
        chosen = np.argsort(-wrong, kind="stable")[: min(MAX_WORST_ROWS, int((wrong > 0).sum()))]
        lines = [
            (_listed(line["prediction"]), _wrong_labels(int(number)), _listed(line["label"]))
            for line, number in zip(predictions.take(chosen).to_pylist(), wrong[chosen], strict=True)
        ]
        found, rows = int((wrong > 0).sum()), len(predictions)
        summary = f"{count(found)} of {count(rows)} {set_name} rows have a wrong label"
        summary += f". These {len(lines)} have the most." if len(lines) < found else "."
        if not found:
            summary = f"No mistakes: all labels of all {count(rows)} {set_name} rows are right."
        return Worst("Which rows are wrong", summary, chosen, lines)

    @classmethod
    def compared_types(cls) -> tuple[type[LabelEstimates], type[LabelLead]]:
        return LabelEstimates, LabelLead

    def shown_labels(self) -> list[LabelScores]:
        """All labels in their order; of too many, the MAX_LABELS_SHOWN with the lowest F1, the worst first."""
        if len(self.per_label) <= MAX_LABELS_SHOWN:
            return self.per_label
        return sorted(self.per_label, key=lambda each: each.f1)[:MAX_LABELS_SHOWN]

    def has_matrix(self) -> bool:
        return 1 < len(self.per_label) <= MAX_MATRIX_SIDE

    def pairs(self) -> list[LabelPair]:
        """The pairs of labels that most rows have together."""
        if not self.together:
            return []
        together = np.triu(np.array(self.together, np.int64), 1)
        best = np.argsort(-together, axis=None, kind="stable")[:MAX_PAIRS]
        pairs = [pair for pair in zip(*np.unravel_index(best, together.shape), strict=True) if together[pair] > 0]
        found: list[LabelPair] = []
        for one, other in pairs:
            rare, common = sorted((int(one), int(other)), key=lambda index: self.per_label[index].rows)
            found.append(
                LabelPair(
                    first=self.per_label[rare].name,
                    second=self.per_label[common].name,
                    rows=int(together[one, other]),
                    predicted=self.predicted_together[rare][common],
                    share=int(together[one, other]) / self.per_label[rare].rows,
                )
            )
        return found


def choose_thresholds(labels: np.ndarray, probabilities: np.ndarray) -> list[float]:
    """The threshold of each label with the highest F1, from labels and probabilities [n, L]."""
    return [
        best_threshold("positive_f1", has_label, of_label) if has_label.sum() >= MIN_POSITIVES else USUAL
        for has_label, of_label in zip(labels.T.astype(bool), probabilities.T.astype(np.float64), strict=True)
    ]


def labels_scores(
    names: Sequence[str], labels: np.ndarray, probabilities: np.ndarray, thresholds: Sequence[float], loss_sum: float
) -> LabelsScores:
    """The scores of rows with labels [n, L], 1 where they have the label, and with these probabilities [n, L].

    Raises Diverged if the loss is not finite.
    """
    check_finite("the loss", loss_sum, WHEN_SCORED)
    labels, scores = labels.astype(bool), probabilities.astype(np.float64)
    predicted = scores >= np.array(thresholds)
    found = LabelJudge(list(names)).estimates(labels, predicted)
    there, given, right = labels.sum(axis=0), predicted.sum(axis=0), (labels & predicted).sum(axis=0)
    precision, recall, f1 = ratio(right, given), ratio(right, there), ratio(2 * right, there + given)
    averages = [
        precision_recall(labels[:, index], scores[:, index]).average_precision if rows else None
        for index, rows in enumerate(there)
    ]
    return LabelsScores(
        rows=len(labels),
        loss=loss_sum / len(labels),
        f1=found.f1,
        micro_f1=found.micro_f1,
        accuracy=found.accuracy,
        precision=float(precision.mean()),
        recall=float(recall.mean()),
        average_precision=float(np.mean([each for each in averages if each is not None] or [0.0])),
        without=int((~labels.any(axis=1)).sum()),
        predicted_without=int((~predicted.any(axis=1)).sum()),
        per_label=[
            LabelScores(
                name=name,
                rows=int(there[index]),
                predicted=int(given[index]),
                threshold=float(thresholds[index]),
                precision=float(precision[index]),
                recall=float(recall[index]),
                f1=float(f1[index]),
                average_precision=averages[index],
            )
            for index, name in enumerate(names)
        ],
        together=_together(labels),
        predicted_together=_together(predicted),
    )


def _together(has_label: np.ndarray) -> list[list[int]]:
    """The number of rows with both of two labels, from bool [n, L]; empty for too many labels."""
    if has_label.shape[1] > MAX_LABELS_SHOWN:
        return []
    return (has_label.T.astype(np.float64) @ has_label).astype(np.int64).tolist()


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "no label"


def _wrong_labels(number: int) -> str:
    return "1 wrong label" if number == 1 else f"{number:,} wrong labels"
