"""A TCP proxy on this machine, for networks that fail in ways of their own."""

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster.control_plane import ControlPlane


class Proxy:
    """A proxy between its port and a server's. Its behavior can be changed at any time."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._passes = threading.Event()
        self._passes.set()
        self._connections: list[socket.socket] = []
        self.refuses = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    def fall_silent(self) -> None:
        """From now on, accepts connections and data but forwards nothing."""
        self._passes.clear()

    def break_off(self) -> None:
        """Ends all connections, and from now on each new one at once."""
        self.refuses = True
        for connection in self._connections:
            _end(connection)

    def recover(self) -> None:
        """Passes on again, also what has waited."""
        self.refuses = False
        self._passes.set()

    def close(self) -> None:
        self._listener.close()
        self.break_off()
        self._passes.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._server))
                self._connections += client, server
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passes.wait()
                sink.sendall(data)
        _end(source)
        _end(sink)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    connection.close()


@contextmanager
def proxy_to(control_plane: ControlPlane, folder: Path) -> Generator[tuple[Proxy, dict[str, str]]]:
    """A proxy to the API server, and the environment of a process that is to go through it."""
    configuration = json.loads(control_plane.kubeconfig.read_text())
    proxy = Proxy(int(control_plane.url.rpartition(":")[2]))
    configuration["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    kubeconfig = folder / f"kubeconfig-{proxy.port}"
    kubeconfig.write_text(json.dumps(configuration))
    try:
        yield proxy, {"KUBECONFIG": str(kubeconfig)}
    finally:
        proxy.close()
