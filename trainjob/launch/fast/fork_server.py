"""The process that local workers are forked from: it imports their libraries once, and they share the memory.

`python -m trainjob.launch.fast.fork_server MODULE...`, started by `ForkServer` in `fork_client.py`. Each line on
standard input asks for a `WorkerGroup`. Once its workers have ended, a line on standard output gives their exit codes
in order of rank: minus the signal's number for a killed worker, null for one that the server ended because another had
failed. The server ends with the driver, because standard input is then closed.
"""

import json
import os
import select
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from signal import SIGKILL
from typing import NoReturn, Self

from trainjob.launch.local_worker import log_file
from trainjob.launch.quick_imports import quick_imports

POLL_SECONDS = 0.05
SECONDS_FOR_OTHERS = 2.0
"""Time for the other workers to fail, too, once one has failed."""

WORKER = "trainjob.launch.local_worker"


@dataclass(frozen=True)
class WorkerGroup:
    """Workers that train together."""

    folder: str
    """Folder of their files: see `local_worker`."""
    environments: list[dict[str, str]]
    """Environment variables of each worker in order of rank, added to the server's own."""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        return cls(**json.loads(line))


def main() -> None:
    answers = _reserve_standard_output()
    with quick_imports():
        for module in (WORKER, *sys.argv[1:]):
            import_module(module)
    may_fork = is_safe_to_fork()
    for line in sys.stdin.buffer:
        codes = _run(WorkerGroup.from_json(line), may_fork)
        os.write(answers, json.dumps(codes).encode() + b"\n")


def is_safe_to_fork() -> bool:
    """Whether a fork of this process works like a new process. A lock that another thread holds would stay locked
    forever in the fork, and CUDA does not work in a fork of a process that has initialized it."""
    threads = Path("/proc/self/task")
    torch = sys.modules.get("torch")
    return threads.is_dir() and len(list(threads.iterdir())) == 1 and not (torch and torch.cuda.is_initialized())


def _reserve_standard_output() -> int:
    """Reserves standard output for answers: everything else that is printed goes to standard error.

    Workers inherit the descriptor, so the driver reads its end once all processes are gone.
    """
    answers = os.dup(1)
    os.set_inheritable(answers, True)
    os.dup2(2, 1)
    return answers


def _run(group: WorkerGroup, may_fork: bool) -> list[int | None]:
    """Starts the workers and waits for them to end."""
    ranks = {_start(group, rank, may_fork): rank for rank in range(len(group.environments))}
    codes: list[int | None] = [None] * len(ranks)
    end_others_at = float("inf")
    while ranks:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            code = codes[ranks.pop(pid)] = os.waitstatus_to_exitcode(status)
            if code:
                end_others_at = min(end_others_at, time.monotonic() + SECONDS_FOR_OTHERS)
        elif time.monotonic() > end_others_at:
            _end(ranks)
            break
        elif select.select([0], [], [], POLL_SECONDS)[0]:  # the driver writes nothing now, so it has ended
            _end(ranks)
            sys.exit(1)
    return codes


def _start(group: WorkerGroup, rank: int, may_fork: bool) -> int:
    """Starts a worker and returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        _become_worker(Path(group.folder), group.environments[rank], rank, may_fork)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _become_worker(folder: Path, environment: dict[str, str], rank: int, may_fork: bool) -> NoReturn:
    os.environ.update(environment)
    with log_file(folder, rank).open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if not may_fork:
        os.execv(sys.executable, [sys.executable, "-P", "-m", WORKER, str(folder)])
    import_module(WORKER).main(folder)
    raise AssertionError("a worker ends its process itself")


def _end(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
