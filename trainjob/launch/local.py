"""Workers as processes of this machine, without a Ray cluster: Ray Train's local mode under torchrun's environment."""

import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import IO, Any, Self, cast

from trainjob import interrupts
from trainjob.api.trainjob import Workers
from trainjob.errors import TransientError
from trainjob.launch.fast.fork_server import POLL_SECONDS
from trainjob.launch.fast.group import Group, log_file, result_file, task_file
from trainjob.launch.fast.ray_worker import FORK_ENVIRONMENT
from trainjob.launch.worker_errors import WorkerError, first_failure
from trainjob.scratch import scratch_folder

PORTS = range(32_000, 32_768)
"""Below those that outgoing connections are given, by which a port would be taken again before it is used."""


class LocalWorkers:
    """Worker processes, forked from a server that imports `modules` while the driver still prepares the data.

    They end with the block, and with the driver, however it ends.
    """

    def __init__(self, workers: Workers, threads: int, modules: Sequence[str]) -> None:
        self._workers, self._threads, self._modules = workers, threads, modules
        self._scratch = ExitStack()
        self.folder = self._scratch.enter_context(scratch_folder())
        """For files that workers read; removed with them."""
        self._log = (self.folder / "server.log").open("w+b")
        self._server = self._start_server()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
        self._log.close()
        self._scratch.__exit__(kind, error, trace)

    def run(self, work: Callable[[], Any]) -> Any:
        """Has every worker call `work` within Ray Train and returns what rank 0 returned.

        Raises what the first worker to fail raised; a `WorkerError` where one died without a word.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        task_file(folder).write_bytes(pickle.dumps(work))
        with _own_port() as port:
            environments = [self._environment(rank, port) for rank in range(self._workers.count)]
            codes = self._exit_codes(Group(str(folder), environments))
        errors = [error for rank, code in enumerate(codes) if (error := _error(folder, rank, code)) is not None]
        if errors:
            raise first_failure(errors)
        return pickle.loads(result_file(folder, 0).read_bytes())[0]

    def _start_server(self) -> "subprocess.Popen[bytes]":
        own = {"OMP_NUM_THREADS": str(self._threads), "TMPDIR": str(self.folder)}
        if not self._workers.gpus:
            own["CUDA_VISIBLE_DEVICES"] = ""  # or workers on the CPU would communicate by NCCL
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "trainjob.launch.fast.fork_server", *self._modules],
            env=os.environ | FORK_ENVIRONMENT | own,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is the driver's to handle
        )

    def _exit_codes(self, group: Group) -> list[int | None]:
        """Starts the workers and waits for them. A server that has died is started anew for the next time."""
        requests, answers = cast("IO[bytes]", self._server.stdin), cast("IO[bytes]", self._server.stdout)
        with suppress(BrokenPipeError):
            requests.write(group.to_json() + b"\n")
        while (code := self._server.poll()) is None:
            interrupts.check()
            if select.select([answers], [], [], POLL_SECONDS)[0] and (line := answers.readline()):
                return json.loads(line)
        self._kill()
        self._log.seek(0)
        log = self._log.read().decode(errors="replace")
        self._log.truncate(0)
        self._server = self._start_server()
        raise WorkerError(0, "WorkerDied", f"the process that starts the workers {_ended(code)}", log, time=0.0)

    def _kill(self) -> None:
        """Ends the server and the workers, and waits until they are gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        cast("IO[bytes]", self._server.stdin).close()
        with cast("IO[bytes]", self._server.stdout) as answers:
            answers.read()  # to its end, which comes with the last process
        self._server.wait()

    def _environment(self, rank: int, port: int) -> dict[str, str]:
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self._workers.count),
            "LOCAL_WORLD_SIZE": str(self._workers.count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }


def _error(folder: Path, rank: int, code: int | None) -> Exception | None:
    """What a worker raised; None where it raised nothing or was ended because another had failed."""
    if code is None:
        return None
    with suppress(FileNotFoundError):
        return pickle.loads(result_file(folder, rank).read_bytes())[1]
    return WorkerError(rank, "WorkerDied", _ended(code), log_file(folder, rank).read_text(errors="replace"), time=0.0)


def _ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with {code}"


@contextmanager
def _own_port() -> Generator[int]:
    """One that nothing uses, and that no other driver of this machine takes meanwhile: rank 0 listens there only some
    seconds later. Until the end, a UDP socket is bound to the same number, which is in nobody's way."""
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
    raise TransientError(f"none of the ports {PORTS[0]} to {PORTS[-1]} of this machine is free: end what uses them")
