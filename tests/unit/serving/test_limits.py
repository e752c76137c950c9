"""One client cannot exhaust the server for the others, over HTTP."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from asking import Server, read_answer
from cluster.jobs import eventually
from http_servers import running, served
from trainjob.predictor import Predictor
from trainjob.serving import app, limits
from trainjob.serving.app import build_app

GOOD = {"texts": ["red1"]}


class HeldModel(Predictor):
    """Answers when it is let go; fails on the text `bad`, and knows no number for the text `nan`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.free, self.busy = threading.Event(), threading.Event()
        self.free.set()
        self.batches: list[int] = []

    def outputs(
        self,
        rows: Any,
        batch_size: int = 64,
        where: Callable[[int], str] = str,
        unknown: Counter[str] | None = None,
    ) -> torch.Tensor:
        self.busy.set()
        assert self.free.wait(60)
        self.batches.append(len(rows))
        texts = rows["title"].to_pylist()
        if "bad" in texts:
            raise RuntimeError("a kernel has died")
        result = super().outputs(rows, batch_size, where, unknown)
        result[[index for index, text in enumerate(texts) if text == "nan"]] = torch.nan
        return result


@pytest.fixture
def held(text_run: Path) -> HeldModel:
    return HeldModel.load(text_run)


@contextmanager
def asked(server: Server, model: HeldModel, bodies: Sequence[Any]) -> Generator[Iterator[Any]]:
    """The answers to requests that wait while the model is held; they are there after the block."""
    model.free.clear()
    model.busy.clear()
    with ThreadPoolExecutor(len(bodies) + 1) as pool:
        try:
            first = pool.submit(server.predict, GOOD)
            assert model.busy.wait(60)
            others = [pool.submit(server.predict, body) for body in bodies]
            rows = sum(len(body["texts"]) for body in bodies)
            eventually(lambda: f"waiting_rows {rows}.0" in server.get("/metrics").text)
            yield (other.result() for other in others)
        finally:
            model.free.set()
        assert first.result().status == 200


def test_a_batch_in_which_one_row_fails_answers_the_others(held: HeldModel):
    with served(held, "tags") as server:
        with asked(server, held, [GOOD, {"texts": ["red1", "bad"]}, {"texts": ["nan"]}, GOOD]) as answers:
            pass
        good, bad, nan, other = answers
        assert held.batches[1] == 5  # they were one batch
        assert good.classes == other.classes
        assert (bad.status, nan.status) == (500, 500)
        assert "[1]: the model fails: a kernel has died" in bad.detail
        assert "Traceback" not in bad.text
        assert server.predict(GOOD).status == 200


def test_what_would_wait_too_long_is_refused(held: HeldModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "MAX_WAITING_ROWS", 3)
    with served(held, "tags") as server:
        with asked(server, held, [GOOD, GOOD, GOOD]) as answers:
            refused = server.predict(GOOD)
            assert refused.status == 429
            assert refused.headers["retry-after"] == "1"
            assert "3 rows are already waiting" in refused.detail
        assert [answer.status for answer in answers] == [200, 200, 200]
        assert server.predict(GOOD).status == 200
        assert 'requests_total{status="429"} 1.0' in server.get("/metrics").text


def test_a_client_that_goes_disturbs_nobody(held: HeldModel):
    with served(held, "tags") as server:
        with asked(server, held, [GOOD]) as answers:
            connection = socket.create_connection((server.host, server.port))
            connection.sendall(request(json.dumps({"texts": ["bad", "bad"]}).encode()))
            eventually(lambda: "waiting_rows 3.0" in server.get("/metrics").text)
            connection.close()
        assert next(answers).status == 200


def request(body: bytes, length: int | None = None) -> bytes:
    lines = [
        "POST /predict HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("size", [limits.MAX_BODY_BYTES + 1, 3 * limits.MAX_BODY_BYTES])
def test_a_body_that_is_too_large_is_refused(texts: Server, size: int):
    answer = texts.predict(b" " * size)
    assert answer.status == 413
    assert "larger than 8 MiB" in answer.detail


def test_a_body_of_unknown_length_that_is_too_large_is_refused(texts: Server):
    connection = texts.connect()
    pieces = (b" " * 2**20 for _ in range(20))
    connection.request("POST", "/predict", pieces, {"Content-Type": "application/json"}, encode_chunked=True)
    assert read_answer(connection).status == 413
    connection.close()


def test_a_body_that_is_far_too_large_need_not_come_to_be_refused(texts: Server):
    connection = texts.connect()
    connection.connect()
    connection.sock.sendall(request(b"{", 2**40))
    assert b" 413 " in connection.sock.recv(2**16)
    connection.close()


def test_a_slow_client_is_refused_and_disturbs_nobody(texts: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "BODY_SECONDS", 1.0)
    slow = [socket.create_connection((texts.host, texts.port), timeout=60) for _ in range(100)]
    for connection in slow:
        connection.sendall(request(b'{"texts": ', 1000))
    assert texts.predict(GOOD).status == 200
    for connection in slow:
        assert b" 408 " in connection.recv(2**16)
        connection.close()


def test_bodies_are_held_up_to_a_limit(texts: Server, monkeypatch: pytest.MonkeyPatch):
    """Clients that have gone hold nothing."""
    monkeypatch.setattr(limits, "MAX_HELD_BYTES", 1000)
    with socket.create_connection((texts.host, texts.port)) as connection:
        connection.sendall(request(b" " * 990, 2000))
        eventually(lambda: texts.predict(GOOD).status == 429)
        assert texts.predict(GOOD).headers["retry-after"] == "1"
    eventually(lambda: texts.predict(GOOD).status == 200)


def test_a_server_that_stops_says_so(text_run: Path):
    api = build_app(Predictor.load(text_run), "tags")
    with running(api) as server:
        assert server.predict(GOOD).status == 200
        api.state.stopping = True
        refused = server.predict(GOOD)
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"


def test_a_burst_is_answered_or_refused(texts: Server):
    def ask(number: int) -> tuple[int, list[str]]:
        answer = texts.predict({"texts": [f"red{number}"] * 20})
        return answer.status, answer.classes if answer.status == 200 else []

    with ThreadPoolExecutor(64) as pool:
        found = list(pool.map(ask, range(300)))
    assert {status for status, _ in found} <= {200, 429}
    assert all(len(classes) == 20 for status, classes in found if status == 200)
    assert texts.predict(GOOD).status == 200
