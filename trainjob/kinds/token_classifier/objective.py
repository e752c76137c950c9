"""The objective of token classifiers: the cross-entropy of each token's tag."""

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn import functional

from trainjob.data.batches.examples import IGNORED
from trainjob.evaluation.scores.spans import SpanScores, span_scores
from trainjob.models.objective import Gather
from trainjob.schema.spans import written

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch
    from trainjob.kinds.token_classifier.target import SpanTarget


class SpanTally:
    """Collects true and found spans, and sums up the tokens' losses."""

    def __init__(self, objective: "SpanObjective", device: torch.device) -> None:
        self._objective = objective
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._tokens = 0
        self._pairs: list[tuple[str, str]] = []
        """The spans of each row in JSON: true and found ones."""

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sum += self._objective.losses(answers, batch).sum(dtype=torch.float64)
        self._tokens += int((batch.labels != IGNORED).sum())
        found = [written([span for span, _ in spans]) for spans in self._objective.target.found(answers)]
        self._pairs += zip(self._objective.true_spans(batch), found, strict=True)

    def combine(self, gathered: Gather) -> None:
        parts = gathered((self._loss_sum.cpu(), self._tokens, self._pairs))
        self._loss_sum = torch.stack([loss_sum for loss_sum, _, _ in parts]).sum()
        self._tokens = sum(tokens for _, tokens, _ in parts)
        self._pairs = list(itertools.chain.from_iterable(pairs for _, _, pairs in parts))

    def scores(self) -> SpanScores:
        pairs = np.array(sorted(self._pairs), object).reshape(-1, 2)  # whatever ranks and batches the rows were in
        return span_scores(pairs[:, 0], pairs[:, 1], self._loss_sum.item(), self._tokens)


class SpanObjective:
    """Minimizes the cross-entropy of the tags; scores whole spans."""

    unit = "tokens"

    def __init__(self, target: "SpanTarget") -> None:
        self.target = target

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        """0 where there is no token."""
        logits, tags = answers[..., :-2].flatten(0, 1), batch.labels.flatten()
        return functional.cross_entropy(logits, tags, reduction="none", ignore_index=IGNORED)

    def tally(self, device: torch.device) -> SpanTally:
        return SpanTally(self, device)

    def true_spans(self, batch: "Batch") -> list[str]:
        """The labeled spans of each row, as JSON."""
        rows = batch.inputs["spans"].tolist()
        return [
            written([(start, end, self.target.types[kind]) for start, end, kind in row if kind >= 0]) for row in rows
        ]

    def predictions(self, answers: Tensor, batch: "Batch") -> pa.Table:
        assert batch.rows is not None
        found = self.target.found(answers)
        return pa.table(
            {
                "row": batch.rows,
                "prediction": pa.array([written([span for span, _ in spans]) for spans in found], pa.string()),
                "label": pa.array(self.true_spans(batch), pa.string()),
                "probabilities": pa.array([[p for _, p in sorted(spans)] for spans in found], pa.list_(pa.float32())),
            }
        )
