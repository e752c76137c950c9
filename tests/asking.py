"""Asks an HTTP server as clients do."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """The server's answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text, parse_constant=_refuse)

    @property
    def detail(self) -> str:
        return self.json["detail"]

    @property
    def classes(self) -> list[str]:
        assert self.status == 200, self.text
        return [each["prediction"] for each in self.json["predictions"]]


@dataclass(frozen=True)
class Server:
    """The server's address."""

    port: int
    host: str = "127.0.0.1"

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None, {})

    def predict(self, body: Any, **headers: str) -> Answer:
        """`body` is sent as JSON, or as it is where it is bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._ask("POST", "/predict", content, {"Content-Type": "application/json"} | named)

    def connect(self) -> HTTPConnection:
        return HTTPConnection(self.host, self.port, timeout=SECONDS)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            return read_answer(connection)
        finally:
            connection.close()


def read_answer(connection: HTTPConnection) -> Answer:
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read().decode(errors="replace"))


def _refuse(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")
