"""A receiver of webhooks on this machine."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

ADDRESS = "127.0.0.1"


class Request(NamedTuple):
    """A request that the receiver got."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes
    status: int
    """The answer."""


class Receiver:
    """What a receiver got, and how it answers."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 204
        self.answers = threading.Event()
        """Unset: it answers no request."""
        self.answers.set()
        self.requests: list[Request] = []

    @property
    def accepted(self) -> list[Request]:
        return [request for request in self.requests if request.status < 300]


@contextmanager
def receiving() -> Generator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body, status = self.rfile.read(int(self.headers.get("Content-Length", 0))), receiver.status
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(Request(self.path, headers, body, status))
            receiver.answers.wait()
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:  # of a redirect that is followed
            self.do_POST()

        def log_message(self, *_: Any, **__: Any) -> None:
            pass

    server = ThreadingHTTPServer((ADDRESS, 0), Handler)
    receiver.url = f"http://{ADDRESS}:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()
