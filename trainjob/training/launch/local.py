"""Workers as processes of this machine, without a Ray cluster: Ray Train's local mode under torchrun's environment."""

import os
import pickle
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from trainjob.data import Examples
from trainjob.training.outcome import WorkerError, first_failure

POLL_SECONDS = 0.05
SECONDS_FOR_OTHERS = 2.0
"""How long the other workers may take to fail, too, once one has."""


@dataclass
class Worker:
    rank: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    result: IO[bytes]
    ended_by_driver: bool = False


class LocalWorkers:
    """Worker processes that load their libraries while the driver still prepares the data.

    They end when the driver does, however it ends: the pipe that holds their task is then closed.
    """

    def __init__(self, count: int, threads: int, logs: Path) -> None:
        port = _free_port()
        self._workers = [_start(rank, count, threads, port, logs) for rank in range(count)]

    def run(self, task: Any) -> Any:
        """Gives the workers their task, waits for them, and returns what rank 0 returned.

        Raises what the first worker to fail raised; a `WorkerError` where one died without a word.
        """
        for worker in self._workers:
            assert worker.process.stdin is not None
            try:
                pickle.dump(task, worker.process.stdin)
                worker.process.stdin.flush()
            except BrokenPipeError:
                pass  # it died while loading, which the wait below reports
        failed_at: float | None = None
        while any(worker.process.poll() is None for worker in self._workers):
            if failed_at is None and any(worker.process.poll() for worker in self._workers):
                failed_at = time.monotonic()
            if failed_at is not None and time.monotonic() - failed_at > SECONDS_FOR_OTHERS:
                self.kill()
            time.sleep(POLL_SECONDS)
        errors = [error for worker in self._workers if (error := _error(worker)) is not None]
        if errors:
            raise first_failure(errors)
        return _result(self._workers[0])[0]

    def kill(self) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.ended_by_driver = True
                worker.process.kill()
                worker.process.wait()


def save_arrays(examples: dict[str, Examples], folder: Path) -> None:
    for name, rows in examples.items():
        (folder / name).mkdir(parents=True)
        for array in fields(rows):
            np.save(folder / name / f"{array.name}.npy", getattr(rows, array.name))


def load_arrays(folder: Path) -> dict[str, Examples]:
    """What `save_arrays` wrote, mapped into memory that the workers share."""
    return {
        path.name: Examples(
            **{array.name: np.load(path / f"{array.name}.npy", mmap_mode="r") for array in fields(Examples)}
        )
        for path in folder.iterdir()
    }


def _start(rank: int, count: int, threads: int, port: int, logs: Path) -> Worker:
    environment = os.environ | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": str(threads),
    }
    log, result = (logs / f"worker-{rank}.log").open("w+b"), (logs / f"worker-{rank}.result").open("w+b")
    process = subprocess.Popen(
        [sys.executable, "-m", "trainjob.training.launch.local_worker", result.name],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is the driver's to handle
    )
    return Worker(rank, process, log, result)


def _result(worker: Worker) -> tuple[Any, Exception | None]:
    worker.result.seek(0)
    return pickle.load(worker.result)


def _error(worker: Worker) -> Exception | None:
    code = worker.process.returncode
    if code == 0 or worker.ended_by_driver:
        return None
    try:
        return _result(worker)[1]
    except EOFError:
        worker.log.seek(0)
        how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
        log = worker.log.read().decode(errors="replace")
        return WorkerError(worker.rank, "WorkerDied", how, log, time=0.0)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
