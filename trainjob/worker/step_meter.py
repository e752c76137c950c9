"""Measures the steps since the last record: loss, speed and padding."""

import time

import torch
from torch import Tensor

from trainjob.data.batch import Batch
from trainjob.worker.distributed import sum_over_ranks


class StepMeter:
    """Adds up the batches of this rank and their losses, which stay on the device, so that adding does not wait."""

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
        """The sum of the losses and of their weights over all ranks, and the values to record: mean loss, rows per
        second, for texts the share of token slots that is padding, and the weight per second under the name of its
        `unit`, if that is not rows."""
        counted = self._loss.new_tensor([self._weight, self._rows, self._places, self._padding])
        loss, weight, rows, places, padding = sum_over_ranks(torch.cat([self._loss[None], counted])).tolist()
        seconds = time.perf_counter() - self._since
        values = {"loss": loss / max(weight, 1), "samples_per_second": rows / seconds}
        if unit is not None:
            values[f"{unit}_per_second"] = weight / seconds
        if places:
            values["padding"] = padding / places
        return loss, weight, values
