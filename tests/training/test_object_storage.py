"""Data from an S3 server, and the whole run kept on it."""

import json
import random
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import certifi
import minio_server
import psutil
import pytest
import yaml
from safetensors.torch import load_file
from training_runs import ENVIRONMENT_STAYS, LIMIT, Finished, Run, assert_equal
from typer.testing import CliRunner

from cluster.jobs import eventually
from soak import SOAK
from trainjob import Predictor
from trainjob.api import Checkpoints
from trainjob.api.load import load_trainjob
from trainjob.cli.app import app
from trainjob.errors import StorageError
from trainjob.runs.attempts import read_attempts
from trainjob.runs.folder import run_folder
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore

NewRun = Callable[..., Run]


def on_s3(minio: minio_server.MinIO, bucket: str, text_set: Path) -> dict[str, Any]:
    """Changes to a text run: its data and its storage on S3."""
    uri = f"s3://{bucket}"
    Folder(uri, minio.endpoint).upload(text_set, "data")
    return {
        "dataset.train": {"uri": f"{uri}/data/train.csv"},
        "dataset.test": {"uri": f"{uri}/data/test.csv"},
        "storage": {"uri": f"{uri}/runs", "endpoint": minio.endpoint},
    }


@pytest.mark.nightly
def test_a_local_run_whose_server_goes_away_for_a_while(
    new_run: NewRun, minio: minio_server.MinIO, bucket: str, text_set: Path, monkeypatch: pytest.MonkeyPatch
):
    changes = on_s3(minio, bucket, text_set) | {"dataset.loader": "dataLoader"}
    run = new_run("text", changes)
    run.first = ENVIRONMENT_STAYS
    checkpoints = Folder(f"s3://{bucket}/runs/run/checkpoints", minio.endpoint)
    driver = run.start()
    while not checkpoints.list():
        assert driver.poll() is None, driver.communicate()[0]
        time.sleep(0.1)
    minio.stop()
    time.sleep(2)
    minio.start()
    output = driver.communicate(timeout=LIMIT)[0]
    assert driver.returncode == 0, output
    assert "starting again" not in output
    folder = Folder(f"s3://{bucket}/runs/run", minio.endpoint)
    assert f"{folder.uri}/report.html" in output
    assert {"evaluation.json", "metrics.jsonl", "model", "report.html", "summary.json"} <= set(folder.list())
    assert folder.list("tensorboard") != []

    monkeypatch.setenv("AWS_ENDPOINT_URL", minio.endpoint)
    assert len(Predictor.load(folder.uri).predict(["red1 red2", "blue3"])) == 2
    arguments = ["evaluate", "--json", folder.uri, f"s3://{bucket}/data/test.csv"]
    scored = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert scored.exit_code == 0, scored.stderr
    evaluation = json.loads(folder.read("evaluation.json"))
    assert json.loads(scored.stdout)["confusion"] == evaluation["test"]["confusion"]

    assert "has already finished" in run.again()
    folder.delete("summary.json")  # as if stopped before it was written
    assert "continues from epoch-0003" in run.finish().stdout


def test_a_driver_that_was_replaced_meanwhile_changes_nothing(
    new_run: NewRun, minio: minio_server.MinIO, bucket: str, text_set: Path, tmp_path: Path
):
    """Delays a driver, as on a node that is cut off, until another one has finished."""
    changes = on_s3(minio, bucket, text_set) | {"dataset.loader": "dataLoader"}
    run = new_run("text", changes)
    run.first = ENVIRONMENT_STAYS
    folder = Folder(f"s3://{bucket}/runs/run", minio.endpoint)
    old = run.start()
    while not any(folder.exists(f"checkpoints/{name}/checkpoint.json") for name in folder.list("checkpoints")):
        assert old.poll() is None, old.communicate()[0]
        time.sleep(0.05)
    processes = all_of([old])
    for process in processes:
        process.suspend()
    run.finish()
    before = contents(folder, tmp_path / "before")
    for process in processes:
        process.resume()
    output = old.communicate(timeout=LIMIT)[0]
    assert old.returncode != 0
    assert "another process has taken over this run" in output
    after = contents(folder, tmp_path / "after")
    assert after.keys() == before.keys()
    assert (
        len([name for name in after if after[name] != before[name]]) <= 1
    )  # what it was uploading when it was held up
    assert json.loads(folder.read("summary.json"))["attempts"] == 2


IN_A_POD = """
import os
from pathlib import Path
from trainjob.progress import api_server, status_writer
api_server.ACCOUNT, api_server.TIMEOUT_SECONDS = Path(os.environ["ACCOUNT"]), 1
status_writer.FINAL_SECONDS = 1
"""


@pytest.fixture
def silent_api_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Drivers take themselves for those of a pod, whose API server takes connections and never answers."""
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("token")
    (account / "ca.crt").write_text(Path(certifi.where()).read_text())
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("ACCOUNT", str(account))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.getsockname()[1]))
        yield


@pytest.mark.nightly
@pytest.mark.usefixtures("silent_api_server")
@pytest.mark.parametrize("seed", range(10 if SOAK else 1))
def test_attempts_that_are_cut_off_from_the_api_server_alone_spoil_nothing(
    new_run: NewRun, local: Finished, minio: minio_server.MinIO, bucket: str, text_set: Path, tmp_path: Path, seed: int
):
    """Each goes on writing after the next one has begun, and the last ends as if it had been alone."""
    chance, last = random.Random(seed), 3 if SOAK else 2
    changes = on_s3(minio, bucket, text_set) | {"dataset.loader": "dataLoader"}
    changes |= {"checkpoints.everySteps": 1} if SOAK else {}
    run = new_run("text", changes)
    document = yaml.safe_load(run.file.read_text())
    document["metadata"] |= {"namespace": "team", "uid": "a-uid"}
    run.file.write_text(yaml.safe_dump(document))
    run.first = IN_A_POD
    folder = Folder(run_folder(load_trainjob(run.file)).uri, minio.endpoint)
    store, drivers = CheckpointStore(folder, Checkpoints()), list[subprocess.Popen[str]]()
    for attempt in range(1, last + 1):
        drivers.append(run.start())
        eventually(lambda attempt=attempt: max(folder.list(".claims"), default="").startswith(f"{attempt:08d}"), LIMIT)
        for process in all_of(drivers[:-1]):
            process.resume()
        if attempt < last:
            eventually(lambda attempt=attempt: has_begun(folder, attempt), LIMIT)
            eventually(lambda: any(map(store.manifest, store.names())), LIMIT)
            time.sleep(chance.uniform(0.0, 0.3) if SOAK else 0)
            for process in all_of(drivers[-1:]):  # until the next one has begun, as these runs are short
                process.suspend()
    outputs = [driver.communicate(timeout=LIMIT)[0] for driver in drivers]
    assert [driver.returncode == 0 for driver in drivers] == [False] * (last - 1) + [True], outputs
    assert all("another process has taken over this run" in output for output in outputs[:-1])
    assert "the API server does not answer" in outputs[-1]
    copy = tmp_path / "copy"
    folder.download("", copy)
    assert_equal(load_file(copy / "model" / "model.safetensors"), local[0].weights())
    assert measured(copy) == measured(local[0].folder)
    assert json.loads((copy / "summary.json").read_text())["attempts"] == last
    assert all(store.is_intact(name) for name in store.names())


def has_begun(folder: Folder, attempt: int) -> bool:
    """Whether the driver has done more than claim the folder, so that this counts as an attempt."""
    attempts = read_attempts(folder)
    return attempts is not None and attempts.count == attempt


def all_of(drivers: list[subprocess.Popen[str]]) -> list[psutil.Process]:
    """Their processes, and those that they have started."""
    found = [psutil.Process(driver.pid) for driver in drivers if driver.poll() is None]
    return [process for driver in found for process in (driver, *driver.children(recursive=True))]


def measured(folder: Path) -> list[tuple[str, int, float]]:
    """Kind, step and training loss of each line."""
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [(each["kind"], each["step"], each["loss" if each["kind"] == "step" else "train_loss"]) for each in records]


def contents(folder: Folder, copy: Path) -> dict[str, bytes]:
    """All files of a run, except those of a checkpoint that a delayed driver may have been writing."""
    folder.download("", copy)
    (last,) = [path.name for path in (copy / "checkpoints").iterdir() if "epoch-0003" in path.name]
    parts = [path for path in copy.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(copy)): path.read_bytes()
        for path in parts
        if "checkpoints" not in path.parts or last in path.parts
    }


@pytest.mark.parametrize(
    ("changes", "environment", "said"),
    [
        ({"uri": "s3://no-such-bucket/runs"}, {}, "there is no such bucket: create it"),
        ({}, {"AWS_SECRET_ACCESS_KEY": "wrongwrongwrong"}, "spec.storage.secretName"),
        ({"endpoint": "http://127.0.0.1:1"}, {}, "the server does not answer: check spec.storage.endpoint"),
    ],
)
def test_storage_that_cannot_be_used(
    new_run: NewRun,
    minio: minio_server.MinIO,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    environment: dict[str, str],
    said: str,
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    storage = {"uri": f"s3://{bucket}/runs", "endpoint": minio.endpoint, **changes}
    run = new_run("image", {"storage": storage})
    with pytest.raises(StorageError) as refused:
        run.again()
    message = str(refused.value)
    assert said in message
    assert len(message.splitlines()) == 1
    assert not any(secret in message for secret in (minio.access_key, minio.secret_key, "wrongwrongwrong"))
