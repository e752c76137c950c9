"""A batch: the model inputs and labels of some rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from trainjob.data.batches.examples import IGNORED


@dataclass(frozen=True)
class Batch:
    """Model inputs by name, each [n, ...], and labels: one a row [n], floats [n, width], or of each token, int64
    [n, length]."""

    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor
    rows: np.ndarray | None = None
    """The positions of the rows in their set, int64 [n], if they are scored; only their order matters."""
    teacher: torch.Tensor | None = None
    """The teacher's logits, float32 [n, C]."""
    padding: int = 0
    """Token slots without a token of a text."""
    is_real: bool = True
    """False on a rank without rows while others have some: it computes a dummy row to take part in the collectives."""

    @property
    def token_slots(self) -> int:
        """Token slots in all rows; 0 for inputs other than texts."""
        return self.inputs["input_ids"][: len(self)].numel() if "input_ids" in self.inputs else 0

    def __len__(self) -> int:
        return len(self.labels) if self.is_real else 0

    @property
    def weight(self) -> float:
        """The number of losses: one per row, or one per learned token."""
        of_rows = self.labels.dim() == 1 or self.labels.is_floating_point()
        return len(self) if of_rows else int((self.labels[: len(self)] != IGNORED).sum())

    def micro_batches(self, count: int) -> list["Batch"]:
        """Splits the rows into `count` batches of about equal size, in order. The padding of all is recorded in the
        last one."""
        bounds = [len(self) * number // count for number in range(count + 1)]
        return [self] if count == 1 else [self._rows(start, stop) for start, stop in pairwise(bounds)]

    def _rows(self, start: int, stop: int) -> "Batch":
        some = slice(start, stop) if start < stop else slice(0, 1)
        padding = self.padding if stop == len(self) else 0
        return replace(self._each(lambda tensor: tensor[some]), is_real=start < stop, padding=padding)

    def to(self, device: torch.device) -> "Batch":
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> "Batch":
        """The batch in pinned memory, from which a GPU copies asynchronously."""
        return self._each(torch.Tensor.pin_memory)

    def without_full_mask(self) -> "Batch":
        """Drops a mask that masks nothing: attention is faster without one, and with one the host would have to wait
        for the GPU to inspect it."""
        inputs = {name: tensor for name, tensor in self.inputs.items() if self.padding or name != "attention_mask"}
        return replace(self, inputs=inputs)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "Batch":
        inputs = {name: change(tensor) for name, tensor in self.inputs.items()}
        teacher = change(self.teacher) if self.teacher is not None else None
        return replace(self, inputs=inputs, labels=change(self.labels), teacher=teacher)
