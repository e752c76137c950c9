"""The process that Ray's workers on a node are forked from: it imports their libraries once.

`python -m trainjob.launch.fast.ray_fork_server NAME OWNER MODULES`, started by `ray_worker.py`. In the operator's pods
it is started with the container, without arguments, and imports what all kinds of models need while Ray starts; a
worker asks for the modules of its own kind. Ray itself is not imported before a fork, because it keeps the environment
of the process that loads it. The server ends with the process OWNER, or when it has had no workers for a while, to free
its memory.
"""

import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from trainjob.launch.fast.fork_server import is_safe_to_fork
from trainjob.launch.fast.ray_worker import FORK_ENVIRONMENT, LIBRARIES, POD_SERVER, STARTED, address_of, is_ours
from trainjob.launch.quick_imports import quick_imports

IDLE_SECONDS = 120.0
"""Time that it waits for a request while it has no workers. It holds half a gigabyte, which it shares with workers."""

REQUEST_SECONDS = 10.0
"""Time that a worker has to send its request."""

_POD_MODULES = ("trainjob.worker.train", *LIBRARIES)
_POD_ENVIRONMENT = FORK_ENVIRONMENT | {"OMP_NUM_THREADS": "1"}  # workers set their number of threads themselves


@dataclass(frozen=True)
class _Request:
    """A worker that Ray wants to start."""

    connection: socket.socket
    """Stays open until the worker ends."""
    files: list[int]
    """Its standard input, output and error."""
    content: dict[str, Any]
    """Its modules, environment, folder and arguments."""


def main() -> None:
    name, owner, modules = POD_SERVER, "1", ",".join(_POD_MODULES)
    if sys.argv[1:]:
        name, owner, modules = sys.argv[1:]
    else:
        os.environ.update(_POD_ENVIRONMENT)
    with socket.socket(socket.AF_UNIX) as listener, suppress(ProcessLookupError):
        try:
            listener.bind(address_of(name))
        except OSError:  # there is one
            return
        listener.listen(128)  # before the imports, which those who have connected then wait for
        owner_ends = os.pidfd_open(int(owner))
        request = _serve(listener, owner_ends) if _can_fork_with(modules.split(",")) else None
    if request is not None:
        _become(request)


def _can_fork_with(modules: Iterable[str]) -> bool:
    """Imports `modules`, and returns whether a fork still works."""
    with quick_imports():
        for module in modules:
            import_module(module)
    return is_safe_to_fork()


def _serve(listener: socket.socket, owner_ends: int) -> _Request | None:
    """Forks a process for every request. Returns the request in the fork; in the server None, once the owner has ended,
    there have been no workers and no request for IDLE_SECONDS, or it can fork no more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for workers
    while True:
        ready, _, _ = select.select([listener, owner_ends], [], [], IDLE_SECONDS)
        if owner_ends in ready or not (ready or _has_workers()):
            return None
        if not ready:
            continue
        connection, _ = listener.accept()
        request = _received(connection)
        if request is not None:
            if not _can_fork_with(request.content["modules"].split(",")):
                return None
            if os.fork() == 0:
                os.close(owner_ends)
                return request
            for file in request.files:
                os.close(file)
        connection.close()


def _has_workers() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # SIGCHLD is ignored, so those that have ended are gone
        return False
    return True


def _received(connection: socket.socket) -> _Request | None:
    """The request on a connection; None from another user's process, or one that ends before it has sent it."""
    if not is_ours(connection):
        return None
    connection.settimeout(REQUEST_SECONDS)
    with suppress(OSError, ValueError):
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as reader:
            content = json.loads(reader.readline())
        connection.settimeout(None)
        return _Request(connection, files, content)
    return None


def _become(worker: _Request) -> None:
    """Runs the requested script as Python would in a new process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # Ray ends a worker's whole process group
    for number, file in enumerate(worker.files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(worker.content["environment"])
    os.chdir(worker.content["folder"])
    sys.argv = worker.content["arguments"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    worker.connection.sendall(STARTED)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
