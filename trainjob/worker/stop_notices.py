"""Stops the workers together: when one rank receives a stop notice, all ranks stop after the same step."""

import os
from collections import deque
from collections.abc import Callable

import torch

from trainjob.api.cluster import LEAVING_FILE
from trainjob.launch.fast.ray_internals import is_announced

STEPS_BEHIND = 1
"""The delay, in steps, after which a GPU's sum is read, so that no rank waits for it."""


def is_told_to_stop() -> bool:
    """Whether this worker's pod is about to go, or Ray has announced that it will restart the workers."""
    return pod_is_leaving() or is_announced()


def pod_is_leaving() -> bool:
    """Whether this worker's pod is about to go."""
    return os.path.exists(LEAVING_FILE)


class StopNotices:
    """The stop notices of all ranks. They travel with the sums that the ranks compute in every step anyway."""

    def __init__(self, is_told_to_stop: Callable[[], bool]) -> None:
        self._is_told_to_stop = is_told_to_stop
        self._sums: deque[tuple[torch.Tensor, torch.cuda.Event | None]] = deque()

    def of_this_rank(self, device: torch.device) -> torch.Tensor:
        """1 if this rank is told to stop, or else 0: float32 [], to be summed over the ranks."""
        return torch.full((), float(self._is_told_to_stop()), device=device)

    def record(self, summed: torch.Tensor) -> None:
        """Queues this step's sum over the ranks, to be read by `should_stop`."""
        event = None
        if summed.is_cuda:
            event = torch.cuda.Event()
            summed = torch.empty((), pin_memory=True).copy_(summed.detach(), non_blocking=True)
            event.record()
        self._sums.append((summed, event))

    def should_stop(self) -> bool:
        """Whether any rank was told to stop, by this step or, on a GPU, the step before: the same on all ranks."""
        unread = STEPS_BEHIND if self._sums and self._sums[-1][1] is not None else 0
        stops = False
        while len(self._sums) > unread:
            summed, event = self._sums.popleft()
            if event is not None:
                event.synchronize()
            stops |= bool(summed)
        return stops
