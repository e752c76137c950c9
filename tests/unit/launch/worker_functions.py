"""Functions for the workers of tests."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import distributed

from trainjob.errors import Diverged


def introduce() -> dict[str, Any]:
    """Rank 0's command line and session, and rank, process and parent of all ranks."""
    everybody: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(everybody, (distributed.get_rank(), os.getpid(), os.getppid()))
    return {
        "everybody": everybody,
        "command": Path("/proc/self/cmdline").read_text().split("\0"),
        "session": os.getsid(0),
        "threads": os.environ["OMP_NUM_THREADS"],
    }


def own_and_all_memory() -> tuple[int, int]:
    """Bytes that this process alone holds, and all that it has mapped, after some work."""
    import psutil

    torch.randn(100, 100).matmul(torch.randn(100, 100))
    info = psutil.Process().memory_full_info()
    return info.uss, info.rss


def fail_on_rank_1_while_rank_0_waits() -> None:
    if distributed.get_rank() == 0:
        time.sleep(600)
    raise Diverged("rank 1 is at fault")


def killed_on_rank_1() -> None:
    if distributed.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def exit_with(code: int) -> NoReturn:
    print("these are my reasons", flush=True)
    os._exit(code)


def leave() -> NoReturn:
    sys.exit("these are my reasons")


class Unpicklable(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError("this does not travel")


def raise_what_does_not_travel() -> NoReturn:
    raise Unpicklable


def kill_server() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
