"""Notices that the workers are to stop: what one rank hears of, all ranks heed after the same step."""

import os
from collections import deque
from collections.abc import Callable

import torch

from trainjob.api.cluster import LEAVING
from trainjob.launch.fast.ray_internals import is_announced

BEHIND = 1
"""Steps by which a GPU's answer is late, so that nobody waits for it."""


def is_told_to_stop() -> bool:
    """Whether this worker's pod is about to go, or Ray has announced that it will start the workers anew."""
    return is_leaving() or is_announced()


def is_leaving() -> bool:
    return os.path.exists(LEAVING)


class Notices:
    """What the ranks have heard, as it comes back with what they sum up in every step anyway."""

    def __init__(self, is_told: Callable[[], bool]) -> None:
        self._is_told = is_told
        self._sums: deque[tuple[torch.Tensor, torch.cuda.Event | None]] = deque()

    def own(self, device: torch.device) -> torch.Tensor:
        """What this rank has heard: float32 [], to be summed over the ranks."""
        return torch.full((), float(self._is_told()), device=device)

    def hear(self, summed: torch.Tensor) -> None:
        """Takes the sum of a step."""
        event = None
        if summed.is_cuda:
            event = torch.cuda.Event()
            summed = torch.empty((), pin_memory=True).copy_(summed.detach(), non_blocking=True)
            event.record()
        self._sums.append((summed, event))

    @property
    def stop(self) -> bool:
        """Whether any rank had heard that it is to stop, by the step before on a GPU: the same on all ranks."""
        kept = BEHIND if self._sums and self._sums[-1][1] is not None else 0
        stops = False
        while len(self._sums) > kept:
            summed, event = self._sums.popleft()
            if event is not None:
                event.synchronize()
            stops |= bool(summed)
        return stops
