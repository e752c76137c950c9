"""The scores of a model that finds spans, over all types and for each type."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.api import StrictModel
from trainjob.evaluation.estimates import Estimate
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.scores.base import WHEN_SCORED, Table, Worst, check_finite
from trainjob.evaluation.scores.estimated import EstimatedScores
from trainjob.evaluation.span_estimates import SpanEstimates, SpanJudge, SpanLead, counts_by_type, scores_of
from trainjob.formatting import count, score
from trainjob.schema.spans import Span, parsed


class TypeScores(StrictModel):
    """The scores of one type."""

    name: str
    """The type."""
    true: int
    """True spans."""
    found: int
    """Found spans."""
    precision: float
    """Share of the found spans that are right."""
    recall: float
    """Share of the true spans that are found."""
    f1: float
    """Harmonic mean of both."""
    partial_f1: float
    """F1 where an overlap with a true span of the type counts half."""


class SpanScores(EstimatedScores):
    """How well a model finds the spans of a set of texts. A span is right if start, end and type are."""

    section: ClassVar[str] = "spans.html.j2"
    caution: ClassVar[str] = (
        "It finds only spans of the types that it has learned, and may miss some or find wrong ones."
    )
    stored_columns: ClassVar[tuple[str, ...]] = ("row", "label", "prediction", "probabilities")
    hub_types: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "partial_f1")

    rows: int
    """Number of texts."""
    loss: float
    """Mean cross-entropy of the tokens' tags."""
    f1: Estimate
    """Harmonic mean of precision and recall, over all types."""
    precision: Estimate
    """Share of the found spans that are right."""
    recall: Estimate
    """Share of the true spans that are found."""
    partial_f1: Estimate
    """F1 where an overlap with a true span of the type counts half."""
    types: list[TypeScores]
    """The scores of each type."""

    @property
    def purpose(self) -> str:
        return f"find spans of {len(self.types)} types in texts"

    def table(self) -> Table:
        headings = ("type", "true", "found", "precision", "recall", "F1", "partial F1")
        return Table(
            headings,
            [
                (
                    each.name,
                    count(each.true),
                    count(each.found),
                    *map(score, (each.precision, each.recall, each.f1, each.partial_f1)),
                )
                for each in self.types
            ],
        )

    def excerpt(self, set_name: str) -> Table:
        table = self.table()
        return Table(table.headings, table.lines, title=f"By type, on the {set_name} set")

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> SpanJudge:
        return SpanJudge()

    @classmethod
    def compared_types(cls) -> tuple[type[SpanEstimates], type[SpanLead]]:
        return SpanEstimates, SpanLead

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The texts with the most confident wrong spans, then those with missed ones."""
        ranked: list[tuple[float, int, tuple[str, str, str]]] = []
        for index, line in enumerate(predictions.select(["label", "prediction", "probabilities"]).to_pylist()):
            true, found = parsed(line["label"]), parsed(line["prediction"])
            wrong = [(p, span) for p, span in zip(line["probabilities"], found, strict=True) if span not in true]
            missed = [span for span in true if span not in found]
            if wrong:
                p, span = max(wrong)
                near = [other for other in true if other[0] < span[1] and span[0] < other[1]]
                ranked.append(
                    (p, index, (_shown(span), f"probability {p:.2f}", ", ".join(map(_shown, near)) or "none"))
                )
            elif missed:
                ranked.append((0.0, index, ("none", f"{len(missed)} missed", _shown(missed[0]))))
        ranked.sort(key=lambda each: -each[0])
        chosen = ranked[:MAX_WORST_ROWS]
        wrong_rows = f"{count(len(ranked))} of {count(len(predictions))} {set_name} rows have a wrong or missed span."
        indices = np.array([index for _, index, _ in chosen], np.int64)
        return Worst("The most confident mistakes", wrong_rows, indices, [lines for _, _, lines in chosen])


def span_scores(labels: np.ndarray, predicted: np.ndarray, loss_sum: float, tokens: int) -> SpanScores:
    """The scores of spans in JSON, objects [n]. Raises Diverged if the loss is not finite."""
    check_finite("the loss", loss_sum, WHEN_SCORED)
    found = SpanJudge().estimates(labels, predicted)
    types: list[TypeScores] = []
    for name, counts in counts_by_type(labels, predicted):
        f1, precision, recall, partial_f1 = scores_of(counts).tolist()
        _, _, number, true = counts.tolist()
        types.append(
            TypeScores(
                name=name, true=true, found=number, precision=precision, recall=recall, f1=f1, partial_f1=partial_f1
            )
        )
    return SpanScores(
        rows=len(labels),
        loss=loss_sum / max(tokens, 1),
        **{name: getattr(found, name) for name in SpanEstimates.model_fields},
        types=types,
    )


def _shown(span: Span) -> str:
    return f"{span[2]} {span[0]}-{span[1]}"
