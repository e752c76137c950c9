"""`trainjob serve`: real processes, and Ray Serve on a cluster."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from asking import Server
from cluster.component import free_ports
from cluster.jobs import eventually
from predictor_runs import make_run
from tiny_sets import write_digits, write_texts
from trainjob import local_ray
from trainjob.predictor import Predictor
from trainjob.serving.config import Served, serve_config

MARK = "TRAINJOB_TEST_SERVER"
LIMIT = 600  # seconds; a busy machine may be many times slower than usual
BURST = 1000


@dataclass(frozen=True)
class Process:
    """A server, and the process that was started for it."""

    server: Server
    process: "subprocess.Popen[str]"

    def stop(self, *signals: signal.Signals) -> None:
        for number in signals:
            self.process.send_signal(number)

    def wait(self) -> str:
        """The server's output until its end, once all its processes have ended."""
        printed = self.process.communicate(timeout=LIMIT)[0]
        marked = [each for each in psutil.process_iter() if _mark(each) == str(self.server.port)]
        assert [each.cmdline() for each in psutil.wait_procs(marked, timeout=120)[1]] == []
        return printed


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except psutil.Error:
        return None


@contextmanager
def serving(run: Path, *options: str) -> Generator[Process]:
    """`trainjob serve` of a run on a free port, when it answers."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "trainjob", "serve", str(run), "--port", str(port), *options]
    with started(command, port) as process:
        yield process


@contextmanager
def started(command: list[str], port: int) -> Generator[Process]:
    environment, server = os.environ | local_ray.ENVIRONMENT | {MARK: str(port)}, Server(port)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            eventually(
                lambda: process.poll() is not None or server.get("/healthz").status == 200,
                LIMIT,
                lambda: f"{command} did not answer",
            )
            assert process.poll() is None, process.communicate()[0]
            yield Process(server, process)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    encoder = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 400}
    dataset = {"train": {"uri": str(write_texts(folder) / "train.csv")}, "text": ["title", "body"], "label": "label"}
    return make_run(folder / "run", {"model": {"textClassifier": {"encoder": encoder}}, "dataset": dataset})


@pytest.fixture(scope="module")
def texts(text_run: Path) -> Generator[Process]:
    with serving(text_run) as process:
        yield process


def test_the_answers_are_the_predictors(texts: Process, text_run: Path):
    asked = ["red1 red2", "blue4 word2", "", "word7 " * 300]
    assert texts.server.predict({"texts": asked}).classes == Predictor.load(text_run).predict(asked)
    assert texts.server.get("/healthz").json["model"] == "run"
    assert texts.server.get("/docs").status == texts.server.get("/").status == 200


def test_what_is_wrong_is_refused(texts: Process):
    server = texts.server
    assert server.predict(b"no JSON").status == 422
    assert (
        server.predict({"rows": [{"title": "a"}]}).detail == "rows[0].body: is missing: send null if there is no value"
    )
    assert server.predict(b" " * 9 * 2**20).status == 413
    assert server.predict({"texts": ["a"]}, Content_Type="text/plain").status == 415


def test_a_port_is_served_at_once(texts: Process, text_run: Path):
    command = [sys.executable, "-m", "trainjob", "serve", str(text_run), "--port", str(texts.server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2
    assert f"port {texts.server.port} (Address already in use): give another --port" in done.stderr
    assert texts.server.predict({"texts": ["a"]}).status == 200


def memory(server: Server) -> float:
    found = re.search(r"^process_resident_memory_bytes (\S+)", server.get("/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


@pytest.mark.nightly
def test_a_burst_is_answered_or_refused_within_bounded_memory(texts: Process):
    """A thousand clients at once, with 10 rows of 1,000 characters each, twice."""
    body = json.dumps({"texts": ["word1 " * 160] * 10}).encode()

    def burst() -> Counter[int]:
        ready = threading.Barrier(BURST)

        def ask(_: int) -> int:
            ready.wait()
            return texts.server.predict(body).status

        with ThreadPoolExecutor(BURST) as pool:
            return Counter(pool.map(ask, range(BURST)))

    before = memory(texts.server)
    for _ in range(2):
        statuses = burst()
        assert set(statuses) <= {200, 429, 503}
        assert statuses[200] > 0
    assert memory(texts.server) - before < 2**30
    assert texts.server.predict({"texts": ["a"]}).status == 200


def test_clients_that_go_leave_nothing_behind(texts: Process):
    body = json.dumps({"texts": ["word1 " * 100] * 500})
    for _ in range(10):
        connection = texts.server.connect()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        connection.close()
    assert texts.server.predict({"texts": ["a"]}).status == 200


@pytest.mark.nightly
def test_two_servers_at_once_and_what_was_asked_before_the_end_is_answered(texts: Process, tmp_path: Path):
    """SIGTERM comes twice, as from a shell that signals a group. The second serves a variant, which is all there is."""
    write_digits(tmp_path)
    model = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 8}}}
    run = make_run(tmp_path / "digits", {"model": model, "dataset": {"train": {"uri": str(tmp_path / "train")}}})
    image = next((tmp_path / "test").glob("*/*.png")).read_bytes()
    body = json.dumps({"images": [base64.b64encode(image).decode()] * 300}).encode()
    shutil.move(run / "model", run / "variants" / "small")
    with serving(run, "--variant", "small") as other:
        assert json.loads(other.server.get("/healthz").text)["model"] == "digits (small)"
        assert texts.server.predict({"texts": ["a"]}).status == 200
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(other.server.predict, body) for _ in range(8)]
            while "waiting_rows 0.0" in other.server.get("/metrics").text:
                pass
            other.stop(signal.SIGTERM, signal.SIGTERM)
            statuses = {each.result().status for each in asked}
        assert statuses <= {200, 429}
        assert 200 in statuses
        other.wait()
        assert other.process.returncode == 0
    with pytest.raises((OSError, HTTPException)):
        other.server.get("/healthz")
    assert texts.server.predict({"texts": ["a"]}).status == 200


@pytest.mark.nightly
def test_a_damaged_model_is_told_in_one_message(text_run: Path, tmp_path: Path):
    run = Path(shutil.copytree(text_run, tmp_path / "damaged"))
    (run / "model" / "model.safetensors").write_bytes(b"nothing")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "trainjob", "serve", str(run), "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2, done.stderr
    assert "the model is damaged" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
@pytest.mark.usefixtures("warm_ray")
def test_what_a_rayservice_deploys_answers_through_ray_serves_proxy(text_run: Path, tmp_path: Path):
    config: dict[str, Any] = serve_config(Served(folder=str(text_run), name="tags"), cpus=1, gpus=0)
    (port,) = free_ports(1)
    config["http_options"]["port"] = port
    file = tmp_path / "serve.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [str(Path(sys.executable).parent / "serve"), "run", f"--address={os.environ['RAY_ADDRESS']}", str(file)]
    with started(command, port) as process:
        assert process.server.predict({"texts": ["red1", "blue2"]}).classes == Predictor.load(text_run).predict(
            ["red1", "blue2"]
        )
        assert process.server.predict(b" " * 9 * 2**20).status == 413
        assert process.server.get("/").status == 200
        process.stop(signal.SIGINT)
        process.wait()
