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
    "trainjob.training.worker",
    "trainjob.models.text",
    "ray.tune",  # which Ray Train imports in every worker
    "torch.utils.tensorboard.writer",
]
SECONDS_FOR_OTHERS = 5
"""How long the other ranks may go on once one has failed."""

_context: Any = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def run_on(ranks: int, function: Callable[..., Result], *arguments: Any, timeout: float = 240) -> list[Result]:
    """Calls `function(*arguments)` on every rank and returns the results in order of rank.

    Fails with the traceback of the first rank that raises, and after `timeout` seconds. `function` and what goes in
    and out must pickle. A single rank is this process.
    """
    if ranks == 1:
        return [_alone(function, arguments)]
    (port,) = free_ports(1)
    pending: dict[Connection, tuple[int, Any]] = {}
    for rank in range(ranks):
        here, there = _context.Pipe(duplex=False)
        settings = os.environ | _torchrun(rank, ranks, port)
        process = _context.Process(target=_rank, args=(there, settings, function, arguments), daemon=True)
        process.start()
        there.close()
        pending[here] = rank, process
    results: dict[int, Result] = {}
    failures: list[str] = []
    deadline = time.monotonic() + timeout
    while pending and (ready := wait(list(pending), deadline - time.monotonic())):
        for end in ready:
            assert isinstance(end, Connection)
            rank, process = pending.pop(end)
            try:
                results[rank], failure = end.recv()
            except EOFError:
                process.join()
                failure = f"the process ended with exit code {process.exitcode}"
            if failure is not None:
                failures.append(f"rank {rank} of {ranks} failed: {failure}")
                deadline = min(deadline, time.monotonic() + SECONDS_FOR_OTHERS)
    for rank, process in pending.values():
        process.kill()
        failures.append(f"rank {rank} of {ranks} did not end within {timeout} s")
    assert not failures, "\n".join(failures)
    return [results[rank] for rank in range(ranks)]


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


def _rank(end: Connection, settings: dict[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    try:
        answer = _train(function, arguments, settings), None
    except BaseException:
        answer = None, traceback.format_exc()
    end.send(answer)
    end.close()
    os._exit(0)


def _train(function: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, str]) -> Any:
    import torch
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    os.environ.update(settings)
    torch.set_num_threads(1)
    trainer = TorchTrainer(partial(_together, function, arguments), scaling_config=ScalingConfig(num_workers=0))
    return trainer.fit().return_value


def _together(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    from torch import distributed

    distributed.barrier()  # a rank that ended before all are connected would make the others fail
    return function(*arguments)
