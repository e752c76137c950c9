"""HTTP requests to a port of a pod, through the API server."""

import socket
from collections.abc import Callable

from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection


class ForwardedPool(HTTPConnectionPool):
    """Connections that `connect` opens, and that are used again."""

    def __init__(self, connect: Callable[[], socket.socket], connections: int = 8) -> None:
        super().__init__("localhost", maxsize=connections)

        class Connection(HTTPConnection):
            def connect(self) -> None:
                self.sock = connect()

        self.ConnectionCls = Connection  # pyrefly: ignore[bad-assignment]
