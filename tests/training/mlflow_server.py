"""An MLflow server in an environment of its own, and an HTTP proxy in front of it that is slow or refuses."""

import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from own_environment import environment

from cluster.component import free_ports

START_SECONDS = 300


class Server:
    def __init__(self, folder: Path) -> None:
        [self.port] = free_ports(1)
        self._folder = folder
        self._log = (folder / "log").open("ab")
        self.start()

    def start(self) -> None:
        """Starts the server, again with the same data, and waits until it answers."""
        store = ["--backend-store-uri", "sqlite:///runs.db", "--artifacts-destination", "artifacts"]
        self._process = subprocess.Popen(
            [
                environment("mlflow==3.17.2") / "mlflow",
                "server",
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--workers",
                "1",
                *store,
            ],
            cwd=self._folder,
            env=os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        end = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end, (self._folder / "log").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._log.close()


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Proxy:
    """Passes requests on, after `delay` seconds; answers `status` instead where it is set and the body of the request
    is larger than `limit` bytes."""

    def __init__(self, server: int) -> None:
        self.delay, self.status, self.limit = 0.0, 0, 0
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(proxy.delay)
                if proxy.status and len(body) > proxy.limit:
                    self.answer(proxy.status, b"<html>refused</html>")
                    return
                connection = HTTPConnection("127.0.0.1", server, timeout=60)
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                self.answer(answer.status, answer.read())
                connection.close()

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = pass_on  # noqa: N815

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running(folder: Path) -> Generator[tuple[Server, Proxy]]:
    server = Server(folder)
    proxy = Proxy(server.port)
    try:
        yield server, proxy
    finally:
        proxy.close()
        server.close()
