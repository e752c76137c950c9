"""What was trained on since the last record."""

import time

import torch
from torch import Tensor

from trainjob.data.batch import Batch
from trainjob.training.distributed import sum_over_ranks


class Recent:
    """Counts batches and their losses on this rank. The losses stay on the device, so that nobody waits for it."""

    def __init__(self, device: torch.device) -> None:
        self._loss = torch.zeros((), dtype=torch.float64, device=device)
        self._weight = 0.0
        self._rows = self._places = self._padding = 0
        self._since = time.perf_counter()

    def add(self, batch: Batch, losses: Tensor) -> None:
        self._loss += losses.detach().sum(dtype=torch.float64)
        self._weight += batch.weight
        self._rows += len(batch)
        self._places += batch.places
        self._padding += batch.padding

    def over_ranks(self, unit: str | None) -> tuple[float, float, dict[str, float]]:
        """The sum of the losses, their weight, whose unit is `unit` where it is not rows, and what is recorded of all
        ranks: the mean loss, speeds and, of texts, the share of the tokens' places that is padding."""
        counted = self._loss.new_tensor([self._weight, self._rows, self._places, self._padding])
        loss, weight, rows, places, padding = sum_over_ranks(torch.cat([self._loss[None], counted])).tolist()
        seconds = time.perf_counter() - self._since
        values = {"loss": loss / max(weight, 1), "samples_per_second": rows / seconds}
        if unit is not None:
            values[f"{unit}_per_second"] = weight / seconds
        if places:
            values["padding"] = padding / places
        return loss, weight, values
