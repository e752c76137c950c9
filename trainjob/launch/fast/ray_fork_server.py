"""The process that Ray's workers on a node are forked from: it imports their libraries once.

`python -m trainjob.launch.fast.ray_fork_server NAME OWNER MODULES`, started by `ray_worker.py`. Ray itself is not
imported before a fork, because it keeps the environment of the process that loads it. The server ends with the process
OWNER, or when no worker has been asked for in a while, to free its memory.
"""

import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from trainjob.launch.fast.fork_server import is_safe_to_fork
from trainjob.launch.fast.ray_worker import STARTED, address_of, is_ours
from trainjob.launch.quick_imports import quick_imports

IDLE_SECONDS = 120.0
"""Time that it waits for the next request. It holds about half a gigabyte."""


def main() -> None:
    name, owner, modules = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as listener, suppress(ProcessLookupError):
        try:
            listener.bind(address_of(name))
        except OSError:  # there is one
            return
        listener.listen(128)  # before the imports, which those who have connected then wait for
        owner_ends = os.pidfd_open(int(owner))
        with quick_imports():
            for module in modules.split(","):
                import_module(module)
        if not is_safe_to_fork():
            return
        worker = _serve(listener, owner_ends)
    if worker is not None:
        _become(worker)


def _serve(listener: socket.socket, owner_ends: int) -> socket.socket | None:
    """Forks a process for every connection. Returns the connection in the fork; in the server None, once the owner has
    ended or there has been no request for IDLE_SECONDS."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for workers
    while True:
        ready, _, _ = select.select([listener, owner_ends], [], [], IDLE_SECONDS)
        if not ready or owner_ends in ready:
            return None
        connection, _ = listener.accept()
        if is_ours(connection) and os.fork() == 0:
            os.close(owner_ends)
            return connection
        connection.close()


def _become(worker: socket.socket) -> None:
    """Runs the requested script as Python would in a new process. The connection stays open until the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # Ray ends a worker's whole process group
    _, files, _, _ = socket.recv_fds(worker, 1, 3)
    request = json.loads(worker.makefile("rb").readline())
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["arguments"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    worker.sendall(STARTED)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
