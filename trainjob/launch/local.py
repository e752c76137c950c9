"""Workers as processes of this machine, without Ray, in the environment that torchrun would give them."""

import pickle
import socket
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Self

from trainjob.api.trainjob import Workers
from trainjob.errors import TransientError
from trainjob.launch.fast.fork_client import ForkServer, ServerDied
from trainjob.launch.fast.fork_server import WorkerGroup
from trainjob.launch.local_worker import log_file, result_file, work_file
from trainjob.launch.worker_errors import WorkerError, first_failure
from trainjob.scratch import scratch_folder

PORTS = range(32_000, 32_768)
"""Below the range that outgoing connections take their ports from, where a free port may be taken before it is used."""


class LocalWorkers:
    """Worker processes. Their libraries, `modules`, begin to load at once, while the driver still prepares the data.

    They end with the block, and with the driver, however it ends.
    """

    def __init__(self, workers: Workers, threads: int, modules: Sequence[str]) -> None:
        self._count = workers.count
        self._end = ExitStack()
        self.folder = self._end.enter_context(scratch_folder())
        """A folder for files that workers read, removed with them."""
        environment = {"OMP_NUM_THREADS": str(threads), "TMPDIR": str(self.folder)}
        if not workers.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = ""  # or workers on the CPU would communicate by NCCL
        self._processes = ForkServer(modules, environment, self.folder / "server.log")
        self._end.callback(self._processes.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.__exit__(kind, error, trace)

    def close(self) -> None:
        """Ends the workers, unless they have ended."""
        self._end.close()

    def run(self, work: Callable[[], Any]) -> Any:
        """Calls `work` in every worker, in a process group of all, and returns what rank 0 returned.

        Raises the exception of the first worker to fail, and WorkerError if a worker's process died.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        work_file(folder).write_bytes(pickle.dumps(work))
        with _reserved_port() as port:
            environments = [self._environment(rank, port) for rank in range(self._count)]
            try:
                codes = self._processes.run(WorkerGroup(str(folder), environments))
            except ServerDied as death:
                message = f"the process that starts the workers {_ended(death.code)}"
                raise WorkerError.died(0, message, death.log) from None
        errors = [error for rank, code in enumerate(codes) if (error := _error(folder, rank, code)) is not None]
        if errors:
            raise first_failure(errors)
        return pickle.loads(result_file(folder, 0).read_bytes())[0]

    def _environment(self, rank: int, port: int) -> dict[str, str]:
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self._count),
            "LOCAL_WORLD_SIZE": str(self._count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }


def _error(folder: Path, rank: int, code: int | None) -> Exception | None:
    """The exception of a worker; None if there was none, or if another one had failed first (`code` None)."""
    if code is None:
        return None
    with suppress(FileNotFoundError):
        return pickle.loads(result_file(folder, rank).read_bytes())[1]
    return WorkerError.died(rank, _ended(code), log_file(folder, rank).read_text(errors="replace"))


def _ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"


@contextmanager
def _reserved_port() -> Generator[int]:
    """A free port for rank 0, which listens there only seconds later. For the time of the block, a UDP socket bound to
    the same number keeps other drivers of this machine from choosing it."""
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket(type=socket.SOCK_DGRAM) as guard:
            try:
                guard.bind(("", port))
                with socket.socket() as probe:
                    probe.bind(("", port))
            except OSError:
                continue
            yield port
            return
    raise TransientError(
        f"none of the ports {PORTS[0]} to {PORTS[-1]} of this machine is free: stop the processes that use them"
    )
