"""A Ray head as a process of its own."""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cluster.component import ENDS_WITH_US
from trainjob import local_ray


@contextmanager
def ray_head(options: list[str], environment: dict[str, str], log: Path) -> Generator[psutil.Process]:
    """Is up in the block, and killed with all that it has started."""
    started = _started(options, environment, log)
    head = psutil.Process(started.pid)
    try:
        yield head
    finally:
        kill(head)
        started.wait()


def kill(head: psutil.Process) -> None:
    """Kills the head as the loss of its machine would."""
    servers = head.children(recursive=True)
    for server in servers:
        server.kill()
    psutil.wait_procs(servers)
    head.kill()


def _started(
    options: list[str], environment: dict[str, str], log: Path, attempts: int = local_ray.STARTS
) -> "subprocess.Popen[bytes]":
    with log.open("w") as output:
        command = [*ENDS_WITH_US, sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
        head = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    while "Ray runtime started" not in log.read_text():
        if head.poll() is not None:
            assert attempts > 1, log.read_text()
            return _started(options, environment, log, attempts - 1)
        time.sleep(0.1)
    return head
