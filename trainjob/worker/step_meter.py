"""Measures the loss, speed and padding of the steps since the last record."""

import time

import torch
from torch import Tensor

from trainjob.data.batches.batch import Batch
from trainjob.worker.distributed import sum_over_ranks


class StepMeter:
    """Sums the losses of this rank's batches on the device, so that the host does not wait for them."""

    def __init__(self, device: torch.device) -> None:
        self._loss = torch.zeros((), dtype=torch.float64, device=device)
        self._weight = 0.0
        self._rows = self._token_slots = self._padding = 0
        self._since = time.perf_counter()

    def add(self, batch: Batch, losses: Tensor) -> None:
        self._loss += losses.detach().sum(dtype=torch.float64)
        self._weight += batch.weight
        self._rows += len(batch)
        self._token_slots += batch.token_slots
        self._padding += batch.padding

    def over_ranks(self, unit: str | None) -> tuple[float, float, dict[str, float]]:
        """The sum of the losses and of their weights over all ranks, and the values to record: mean loss, rows per
        second, for texts the share of token slots that is padding, and the weight per second under the name of its
        `unit`, if that is not rows."""
        counted = self._loss.new_tensor([self._weight, self._rows, self._token_slots, self._padding])
        loss, weight, rows, token_slots, padding = sum_over_ranks(torch.cat([self._loss[None], counted])).tolist()
        seconds = time.perf_counter() - self._since
        values = {"loss": loss / max(weight, 1), "samples_per_second": rows / seconds}
        if unit is not None:
            values[f"{unit}_per_second"] = weight / seconds
        if token_slots:
            values["padding"] = padding / token_slots
        return loss, weight, values
