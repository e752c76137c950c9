"""HTTP requests to a port of a pod, through the API server."""

import socket
from collections.abc import Callable

from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection


class PodConnectionPool(HTTPConnectionPool):
    """Keeps connections to the pod, each opened by `connect`, for later requests."""

    def __init__(self, connect: Callable[[], socket.socket], connections: int = 8) -> None:
        super().__init__("localhost", maxsize=connections)

        class PodConnection(HTTPConnection):
            def connect(self) -> None:
                self.sock = connect()

        self.ConnectionCls = PodConnection  # pyrefly: ignore[bad-assignment]
