"""The target is the next token of each token in a row; rows need no labels."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trainjob.api import TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.kinds.causal_lm.packing import label_matrix
from trainjob.kinds.target import Target

if TYPE_CHECKING:
    from torch import Tensor, nn

    from trainjob.evaluation.estimates import Judge
    from trainjob.kinds.reply import Reply
    from trainjob.kinds.targets.next_token_objective import NextTokenObjective


@dataclass(frozen=True)
class NextToken(Target):
    """The label of a token is the next one of packed rows; the network has an output for each token that it knows."""

    @property
    def width(self) -> int:
        return 0

    def in_words(self) -> None:
        """Rows have no labels."""

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        raise ValueError(f"no labels are read from {column}: the next token is the label")

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """One for all rows."""
        return np.zeros(rows, np.int64)

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        """The bytes of one class without a name: runs of earlier versions have stored their digest."""
        return json.dumps([""]).encode() + self.strata(labels, rows).tobytes()

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The token after each one, int64 [n, length]; IGNORED where none is learned."""
        return label_matrix(examples, inputs["input_ids"].shape[1])

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "NextTokenObjective":
        from trainjob.kinds.targets.next_token_objective import NextTokenObjective

        return NextTokenObjective(compiled=spec is not None and spec.training.compile)

    def answer(self, outputs: "Tensor", module: "nn.Module") -> None:
        """A language model answers by generating, token by token."""

    @property
    def reply_type(self) -> "type[Reply]":
        raise ValueError("a language model generates")

    def replies(self, outputs: "Tensor", module: "nn.Module") -> "list[Reply]":
        return []

    @property
    def judge(self) -> "Judge":
        raise ValueError("a language model predicts nothing for a row")

    def save(self) -> dict[str, Any]:
        return {}
