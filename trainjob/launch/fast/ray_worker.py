"""The program that Ray starts on a node instead of Python. It asks the node's fork server for the worker.

`python -I -S ray_worker.py NAME THREADS MODULES SCRIPT ARGUMENT...`, as Ray's `py_executable`. It runs before each
worker, so it imports little, and ends with the worker. The first one on a node starts the fork server, unless the
operator's pod has started it. If the server cannot fork, this process becomes the worker.
"""

import json
import os
import socket
import sys
import time

STARTED = b"s"
"""The byte that a worker sends once it has been forked."""

POD_SERVER = "trainjob pod"
"""The name of the fork server that is started with a pod of the operator's. Each pod has its own socket addresses."""
LIBRARIES = ("torch._dynamo", "torch.utils.tensorboard.writer", "pandas", "requests", "jsonschema", "click", "pdb")
"""Imports of all workers: an optimizer needs the first, rank 0 the second, Ray the others."""

_SERVER = "trainjob.launch.fast.ray_fork_server"
FORK_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
"""Keeps libraries from starting threads and CUDA before a fork, which the fork would not survive."""


def main() -> None:
    name, threads, modules, *worker = sys.argv[1:]
    connection = _forked(name, threads, modules, worker)
    if connection is None:
        os.execv(sys.executable, [sys.executable, *worker])
    connection.recv(1)  # returns when the worker has ended


def start_server(name: str, threads: str, modules: str, owner: int) -> int:
    """Starts a fork server that imports `modules`, separated by commas, and ends with the process `owner`. It ends at
    once if there is already one of this name. Returns its process id."""
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", _SERVER, name, str(owner), modules],
        {**os.environ, **FORK_ENVIRONMENT, "OMP_NUM_THREADS": threads},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            *((os.POSIX_SPAWN_DUP2, 0, output) for output in (1, 2)),
        ],
        setsid=True,
    )


def address_of(name: str) -> str:
    """The socket address of a fork server. It is free again as soon as the server's process has ended."""
    return f"\0{name}"


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is of the same user: such addresses are open to all users."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


def _forked(name: str, threads: str, modules: str, worker: list[str]) -> "socket.socket | None":
    """The connection to a new worker, which ends with it; None if there is no fork server that can fork."""
    try:
        connection = _connected(name) or _connected_to_new(name, threads, modules)
        if connection is None:
            return None
        request = {"modules": modules, "arguments": worker, "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(connection, [b"f"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        return connection if connection.recv(1) == STARTED else None
    except OSError:  # it has ended meanwhile
        return None


def _connected_to_new(name: str, threads: str, modules: str) -> "socket.socket | None":
    raylet = int(os.environ.get("RAY_RAYLET_PID", os.getppid()))
    server = start_server(name, threads, modules, raylet)
    while True:
        ended = os.waitpid(server, os.WNOHANG) != (0, 0)  # as another one of this name is there
        if (connection := _connected(name)) is not None or ended:
            return connection
        time.sleep(0.02)


def _connected(name: str) -> "socket.socket | None":
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address_of(name))
    except ConnectionRefusedError:
        connection.close()
        return None
    if not is_ours(connection):
        raise PermissionError(name)
    return connection


if __name__ == "__main__":
    main()
