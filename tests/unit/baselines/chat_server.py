"""An HTTP server that speaks OpenAI's protocol, as a test wants it."""

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """The response of the server; by default a completion whose text is `text`."""

    text: str = ""
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Seconds to wait before responding."""
    hang_up: bool = False
    """Closes the connection without a word."""

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.text, "type": "error", "code": None}}).encode()
        message = {"role": "assistant", "content": self.text}
        return json.dumps(
            {
                "id": "chat",
                "object": "chat.completion",
                "created": 0,
                "model": "tiny",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40},
            }
        ).encode()


@dataclass
class ChatServer:
    """Keeps what it is asked."""

    reply: Callable[[Request, int], Reply]
    """Returns the reply to a request's body and its number, from 0."""
    address: str = ""
    requests: list[Request] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def texts(self) -> list[str]:
        """The texts that were asked about, each as often as it was."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def take(self, request: Request, key: str) -> int:
        with self._lock:
            self.requests.append(request)
            self.keys.add(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return len(self.requests) - 1

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1


class Server(ThreadingHTTPServer):
    request_queue_size = 100  # who finds the queue full tries again after a second


@contextmanager
def serving(reply: Callable[[Request, int], Reply]) -> Generator[ChatServer]:
    chat = ChatServer(reply)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = chat.take(request, self.headers["Authorization"])
            answer = chat.reply(request, number)
            time.sleep(answer.seconds)
            chat.done()
            if answer.hang_up:
                self.close_connection = True
                return
            content = answer.content()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's name
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    chat.address = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
