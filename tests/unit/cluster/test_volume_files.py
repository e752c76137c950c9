"""The files that the pod of a volume serves, read by this machine: the server is a process here."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from report_runs import TEXT_JOB, finish, write_run
from trainjob.cli.app import app
from trainjob.cluster import file_server
from trainjob.cluster.pod_http import PodConnectionPool
from trainjob.errors import StorageError, StorageUnreachable, UserError
from trainjob.runs.model import model_folder
from trainjob.runs.pull import pull
from trainjob.storage import Folder
from trainjob.storage.filesystem import mount
from trainjob.storage.volume import volume_filesystem

FILES = {
    "trainjob.yaml": b"kind: TrainJob\n",
    "attempts.json": b"{}",
    "summary.json": b"{}",
    "report.html": b"<html>",
    "model/config.json": b"{}",
    "model/model.safetensors": os.urandom(20_000_000),
    "model/a b+c%20&ü.txt": b"",
}
URI = "volume://team/runs/tags-12345678"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    for name, content in FILES.items():
        (tmp_path / "tags" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tags" / name).write_bytes(content)
    (tmp_path / "secret").write_text("of another run")
    (tmp_path / "tags/link").symlink_to(tmp_path / "secret")
    source = Path(file_server.__file__).read_text()
    started = subprocess.Popen([sys.executable, "-c", source, str(tmp_path / "tags"), str(port), "60"])
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield started
    started.kill()
    started.wait()


@pytest.fixture
def pool(server: subprocess.Popen[bytes], port: int) -> PodConnectionPool:
    return PodConnectionPool(lambda: socket.create_connection(("127.0.0.1", port)))


@pytest.fixture
def run(pool: PodConnectionPool) -> Folder:
    mount(URI, volume_filesystem(pool, URI.removeprefix("volume://")))
    return Folder(URI)


def test_commands_that_would_write_into_a_volume(run: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trained = write_run(tmp_path, TEXT_JOB, [])
    finish(trained, ["a", "b", "c"])
    shutil.rmtree(tmp_path / "tags")
    shutil.copytree(trained.uri, tmp_path / "tags")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", URI], catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (0, "tags-12345678-report.html\n")
    assert "can only be read from here" in done.stderr
    assert "mail" in (tmp_path / "tags-12345678-report.html").read_text()
    for command, *options in (["baseline"], ["compress", "--int8"], ["track"]):
        refused = CliRunner().invoke(app, [command, URI, *options]).exception
        assert isinstance(refused, UserError)
        assert f"--what all`, then `trainjob {command} ./tags-12345678`" in str(refused)


def test_a_remote_run_that_has_not_finished_may_be_a_suspended_job(run: Folder, tmp_path: Path):
    for name in ("model/config.json", "summary.json"):
        (tmp_path / "tags" / name).unlink()
    (tmp_path / "tags/checkpoints/epoch-0001-step-00000001").mkdir(parents=True)
    with pytest.raises(UserError, match=rf"`trainjob resume`, or use its checkpoint {URI}/checkpoints/epoch-0001"):
        model_folder(run)


def test_a_run_on_a_volume_is_a_folder(run: Folder, tmp_path: Path) -> None:
    assert run.list() == ["attempts.json", "link", "model", "report.html", "summary.json", "trainjob.yaml"]
    assert run.list("nothing") == []
    assert (run.exists("model"), run.exists("nothing"), run.exists()) == (True, False, True)
    assert {name: size for name, (size, _) in run.files().items() if name != "link"} == {
        name: len(content) for name, content in FILES.items()
    }
    weights = FILES["model/model.safetensors"]
    assert run.read("model/model.safetensors") == weights
    assert run.read_range("model/model.safetensors", 9_999_999, 9) == weights[9_999_999:10_000_008]
    assert run.read("model/a b+c%20&ü.txt") == b""
    run.download("model", tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {Path(name).name for name in FILES if "/" in name}
    with pytest.raises(StorageError, match="no such file"):
        run.read("nothing")
    with pytest.raises(StorageError, match="can only be read from here: pull the run"):
        run.write("report.html", b"")
    assert (run / "model").list() == ["a b+c%20&ü.txt", "config.json", "model.safetensors"]


def test_it_is_pulled_and_the_copy_is_continued(run: Folder, tmp_path: Path) -> None:
    target = tmp_path / "pulled"
    first = pull(run, target, "model", lambda *_: None)
    assert (target / "model/model.safetensors").read_bytes() == FILES["model/model.safetensors"]
    assert pull(run, target, "model", lambda *_: None) == first._replace(copied=0)


@pytest.mark.parametrize("path", ["../secret", "link", "/etc/passwd", "model/../../secret"])
def test_nothing_out_of_the_runs_folder_is_served(pool: PodConnectionPool, path: str) -> None:
    answer = pool.request("GET", f"/read?path={quote(path)}&start=0&end=9")
    assert (answer.status, b"another" in answer.data) == (403, False)


def test_a_pod_that_has_gone(run: Folder, server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()
    with pytest.raises(StorageUnreachable, match="the pod that reads the volume does not answer"):
        replace(run, endpoint="has not answered before").read("summary.json")
