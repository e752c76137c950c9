"""Functions run on several ranks at once, as local workers run: processes of one gloo group under Ray Train."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from cluster.component import free_ports

Result = TypeVar("Result")

PRELOADED = [
    "pytest",
    "trainjob.worker.train",
    "trainjob.kinds.text_classifier.network",
    "ray.tune",  # which Ray Train imports in every worker
    "torch.utils.tensorboard.writer",
]
SECONDS_FOR_OTHERS = 5
"""The time that other ranks have to end after one has failed."""

_context: Any = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)
_idle: list["_Rank"] = []
os.register_at_fork(after_in_child=_idle.clear)  # `make mutation` runs tests in forks, each of which needs its own


def run_on(
    ranks: int, function: Callable[..., Result], *arguments: Any, timeout: float = 240, new: bool = False
) -> list[Result]:
    """Calls `function(*arguments)` on every rank and returns the results in order of rank.

    Fails with the traceback of the first rank that raises, and after `timeout` seconds. `function` and what goes in
    and out must pickle. A single rank is this process; the processes of several serve again, unless one fails or they
    are to be `new`: for a `function` that leaves traces in its process.
    """
    if ranks == 1:
        return [_alone(function, arguments)]
    (port,) = free_ports(1)
    group = [_idle.pop() if _idle and not new else _Rank() for _ in range(ranks)]
    for rank, process in enumerate(group):
        process.end.send((os.environ | _torchrun(rank, ranks, port), os.getcwd(), function, arguments))
    results: dict[int, Result] = {}
    failures: list[str] = []
    deadline = time.monotonic() + timeout
    pending = {process.end: rank for rank, process in enumerate(group)}
    while pending and (ready := wait(list(pending), deadline - time.monotonic())):
        for end in ready:
            assert isinstance(end, Connection)
            rank = pending.pop(end)
            try:
                results[rank], failure = end.recv()
            except (EOFError, ConnectionError):
                failure = f"the process ended with exit code {group[rank].exit_code()}"
            if failure is not None:
                failures.append(f"rank {rank} of {ranks} failed: {failure}")
                deadline = min(deadline, time.monotonic() + SECONDS_FOR_OTHERS)
    failures += [f"rank {rank} of {ranks} did not end within {timeout} s" for rank in pending.values()]
    if new or failures:
        for process in group:
            process.kill()
    else:
        _idle.extend(group)
    assert not failures, "\n".join(failures)
    return [results[rank] for rank in range(ranks)]


class _Rank:
    """A process that calls functions, as one rank of a group each time."""

    def __init__(self) -> None:
        self.end, there = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def exit_code(self) -> int:
        self._process.join()
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self.end.close()


def _torchrun(rank: int, ranks: int, port: int) -> dict[str, str]:
    """The environment that torchrun gives a process."""
    values = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
    return {name: str(value) for name, value in values.items()} | {"MASTER_ADDR": "127.0.0.1"}


def _alone(function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    import torch
    from torch import distributed

    environment, threads = dict(os.environ), torch.get_num_threads()
    try:
        return _train(function, arguments, _torchrun(0, 1, *free_ports(1)))
    finally:
        if distributed.is_initialized():  # as it stays where the function fails
            distributed.destroy_process_group()
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads(threads)


def _serve(end: Connection) -> None:
    while True:
        try:
            settings, folder, function, arguments = end.recv()
        except EOFError:
            os._exit(0)
        os.environ.clear()
        os.chdir(folder)
        try:
            end.send((_train(function, arguments, settings), None))
        except BaseException:
            end.send((None, traceback.format_exc()))
            os._exit(1)  # so that the others lose this rank, as in training


def _train(function: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, str]) -> Any:
    import torch
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    os.environ.update(settings)
    torch.set_num_threads(1)
    trainer = TorchTrainer(partial(_together, function, arguments), scaling_config=ScalingConfig(num_workers=0))  # pyrefly: ignore[bad-argument-type]
    return trainer.fit().return_value  # pyrefly: ignore[missing-attribute]


def _together(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    from torch import distributed

    distributed.barrier()  # a rank that ended before all are connected would make the others fail
    return function(*arguments)
