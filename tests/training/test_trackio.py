"""Runs written to Trackio's own store and to its server, read back from its SQLite file."""

import json
import math
import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from own_environment import environment

from cluster.component import free_ports
from cluster.jobs import eventually
from report_runs import TEXT_JOB, finish, searched, step, write_run
from trainjob.runs.attempts import Attempts, write_attempts
from trainjob.storage import Folder

TRACK = "import sys; sys.path += sys.argv.pop(1).split(':'); from trainjob.cli.app import main; main()"
SERVE = """
import trackio
trackio.show(open_browser=False, block_thread=True)
"""
Settings = dict[str, str]


def python(script: str, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
    """Runs a script with Trackio's packages before those of the tests."""
    command = [environment("trackio==0.43.0") / "python", "-c", script, *arguments]
    return subprocess.Popen(command, stdout=-1, stderr=subprocess.STDOUT, text=True, env=os.environ | environ)


def track(run: Folder, settings: Settings, store: Path, token: str = "") -> str:
    write_attempts(run, Attempts(started=datetime(2020, 1, 1, tzinfo=UTC), count=1))
    tracking = f"spec.tracking={json.dumps([{'trackio': settings}])}"
    environ = {"TRACKIO_DIR": str(store)} | ({"TRACKIO_WRITE_TOKEN": token} if token else {})
    return python(TRACK, ":".join(sys.path), "track", run.uri, "--set", tracking, **environ).communicate()[0]


def rows(store: Path, project: str) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Step and metrics of the rows that have metrics, by run."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    with sqlite3.connect(store / f"{project}.db") as database:
        for run, at, metrics in database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id"):
            found.setdefault(run, []).extend([(at, values)] if (values := json.loads(metrics)) else [])
    return found


def configs(store: Path, project: str) -> dict[str, dict[str, Any]]:
    with sqlite3.connect(store / f"{project}.db") as database:
        return {run: json.loads(config) for run, config in database.execute("SELECT run_name, config FROM configs")}


@contextmanager
def server(port: int, store: Path) -> Generator[None]:
    process = python(SERVE, GRADIO_SERVER_PORT=str(port), TRACKIO_DIR=str(store), TRACKIO_WRITE_TOKEN="secret-token")
    try:
        eventually(lambda: urlopen(f"http://127.0.0.1:{port}/version").status == 200, 120)
        yield
    finally:
        process.kill()
        process.communicate()


def write_records(run: Folder, *records: dict[str, Any]) -> None:
    run.write("metrics.jsonl", "".join(f"{json.dumps(record)}\n" for record in records).encode())


def test_the_local_store_has_each_record_once(tmp_path: Path):
    run, store = write_run(tmp_path, TEXT_JOB, []), tmp_path / "store"
    records = [step(number, loss=loss) | {"time": 1.5e9 + number} for number, loss in ((1, 2.0), (2, math.inf))]
    write_records(run, *records)
    assert track(run, {}, store) == f"file://{store}/mail.db\n"
    before = run.read("tracking.json")
    records.append(step(3, loss=0.5) | {"time": 1.5e9 + 3})
    write_records(run, *records)
    track(run, {}, store)
    run.write("tracking.json", before)  # as if the process had been killed after it wrote the record
    finish(run, ["a", "b", "c"])
    for _ in range(2):
        track(run, {}, store)
    [(name, written)] = rows(store, "mail").items()
    assert written[:3] == [(1, {"loss": 2.0}), (2, {"loss": "Infinity"}), (3, {"loss": 0.5})]
    [(after, results)] = written[3:]
    evaluation = json.loads(run.read("evaluation.json"))
    assert (after, results["best/test_accuracy"]) == (4, evaluation["test"]["accuracy"])
    config = configs(store, "mail")[name]
    assert (config["state"], config["training.epochs"], config["_Group"]) == ("finished", "4", None)


def test_a_search_is_a_group_of_its_trials(tmp_path: Path):
    store = tmp_path / "store"
    track(searched(tmp_path, 2), {"project": "a search"}, store)
    [project] = store.glob("*.db")
    found = configs(store, project.stem)
    name = next(name for name in found if "/" not in name)
    groups = {f"{name}/trial-{number}": (name, state) for number, state in ((1, "finished"), (2, "failed"))}
    assert {run: (config["_Group"], config["state"]) for run, config in found.items()} == {
        name: (None, "stopped"),
        **groups,
    }


def test_a_server_that_was_away_is_caught_up(tmp_path: Path):
    [port] = free_ports(1)
    settings = {"uri": f"http://127.0.0.1:{port}", "project": "mail"}
    run, store = write_run(tmp_path, TEXT_JOB, []), tmp_path / "served"
    write_records(run, step(1, loss=2.0), step(2, loss=math.nan))
    assert f"Could not connect to Space '{settings['uri']}'" in track(run, settings, tmp_path, "secret-token")
    with server(port, store):
        refused = track(run, settings, tmp_path, "other-token")
        assert "A write_token is required to log metrics" in refused
        assert "other-token" not in refused
        assert track(run, settings, tmp_path, "secret-token") == f"{settings['uri']}/?project=mail\n"
        write_records(run, step(1, loss=2.0), step(2, loss=math.nan), step(3, loss=0.5))
    assert "Could not connect" in track(run, settings, tmp_path, "secret-token")
    with server(port, store):
        track(run, settings, tmp_path, "secret-token")
    [written] = rows(store, "mail").values()
    assert written == [(1, {"loss": 2.0}), (2, {"loss": "NaN"}), (3, {"loss": 0.5})]
