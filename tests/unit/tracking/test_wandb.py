"""Runs written by wandb's client in its offline mode, read back from its files, and a server that does not answer."""

import json
import math
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import wandb
from google.protobuf.json_format import MessageToDict

from report_runs import TEXT_JOB, finish, searched, step, write_run
from trainjob.api.load import with_overrides
from trainjob.storage import Folder
from trainjob.tracking.follow import RunTracking
from trainjob.tracking.tracker import EndState

pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # wandb's service
Record: Any = import_module("wandb.proto.wandb_internal_pb2").Record
BLOCK, HEADER = 32768, 7


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "CACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    yield tmp_path / "wandb"
    wandb.teardown()


def follow(run: Folder, state: EndState | None, **settings: str) -> RunTracking:
    """Follows a run as a new process does."""
    job = with_overrides(
        run.read("trainjob.yaml").decode(), "x", [f"spec.tracking={json.dumps([{'wandb': settings}])}"]
    )
    tracking = RunTracking(run, job, job.spec.tracking[0])
    tracking.write(state)
    return tracking


def write_records(run: Folder, *losses: float) -> None:
    lines = [json.dumps(step(number, loss=loss) | {"time": 1.5e9 + number}) for number, loss in enumerate(losses, 1)]
    run.write("metrics.jsonl", "".join(f"{line}\n" for line in lines).encode())


class OfflineRun:
    """A file of wandb's offline mode: protocol buffers in LevelDB's log format, after a header of 7 bytes."""

    def __init__(self, file: Path) -> None:
        self.records = [MessageToDict(record, preserving_proto_field_name=True) for record in _records(file)]
        self.run: dict[str, Any] = next(record["run"] for record in self.records if "run" in record)
        self.summary = _values(record["summary"] for record in self.records if "summary" in record)
        configs = [record.get("config") or record.get("run", {}).get("config") for record in self.records]
        self.config = _values(config for config in configs if config)

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows = [_values([{"update": record["history"]["item"]}]) for record in self.records if "history" in record]
        return [{name: value for name, value in row.items() if name != "_runtime"} for row in rows]

    @property
    def exit_code(self) -> int:
        return next(record["exit"] for record in self.records if "exit" in record).get("exit_code", 0)


def _records(file: Path) -> Iterator[Any]:
    data, at, record = file.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if (left := BLOCK - at % BLOCK) < HEADER:
            at += left
            continue
        size, part = struct.unpack_from("<HB", data, at + 4)
        record += data[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if part in (1, 4):  # a whole record, or the last part of one
            yield Record.FromString(record)
            record = b""


def _values(updates: Any) -> dict[str, Any]:
    items = [item for update in updates for item in update.get("update", [])]
    return {item.get("key") or "/".join(item["nested_key"]): json.loads(item["value_json"]) for item in items}


def runs(store: Path) -> list[OfflineRun]:
    """The runs of the offline mode, in the order of their start."""
    files = sorted(store.glob("offline-run-*/*.wandb"), key=lambda file: file.stat().st_mtime_ns)
    return [OfflineRun(file) for file in files]


def test_each_attempt_writes_the_whole_run_under_one_id(tmp_path: Path, store: Path):
    run = write_run(tmp_path, TEXT_JOB, [])
    write_records(run, 2.0, math.inf)
    tracking = follow(run, None)
    write_records(run, 2.0, math.inf, math.nan)
    tracking.write("stopped")
    [folder] = store.glob("offline-run-*")
    assert tracking.status.model_dump() == {"name": "wandb", "url": f"file://{folder}", "message": ""}
    finish(run, ["a", "b", "c"])
    write_records(run, 2.0, math.inf, math.nan, 0.5)
    for _ in range(2):  # the second has nothing to write
        follow(run, "stopped")
    stopped, finished = runs(store)
    rows = [(row["_step"], row["_timestamp"], row["loss"]) for row in finished.rows]
    assert rows[:2] == [(1, 1.5e9 + 1, 2.0), (2, 1.5e9 + 2, math.inf)]
    assert rows[3] == (4, 1.5e9 + 4, 0.5)
    assert [row["_step"] for row in stopped.rows] == [1, 2, 3]
    assert stopped.run["run_id"] == finished.run["run_id"]
    assert finished.run["project"] == finished.run["display_name"] == "mail"
    assert (stopped.config["state"], stopped.exit_code) == ("stopped", 1)
    assert (finished.config["state"], finished.exit_code) == ("finished", 0)
    assert (finished.config["training.epochs"], finished.config["trainjob.name"]) == (4, "mail")
    evaluation = json.loads(run.read("evaluation.json"))
    assert finished.summary["best/test_accuracy"] == evaluation["test"]["accuracy"]


def test_report_and_fingerprint_of_the_data_are_kept(tmp_path: Path, store: Path):
    run = write_run(tmp_path, TEXT_JOB, [step(1, loss=1.0)])
    finish(run, ["a", "b", "c"])
    run.write("report.html", b"<p>report")
    run.write("fitted/split.json", json.dumps({"contents": {"train": "12ab"}}).encode())
    follow(run, "finished")
    [written] = runs(store)
    assert written.config["data"] == {"train": "12ab"}
    [report] = store.glob("offline-run-*/files/report.html")
    assert report.read_bytes() == b"<p>report"
    assert not report.is_symlink()
    assert "report.html" in json.dumps([record for record in written.records if "files" in record])


def test_a_search_is_a_group_of_its_trials(tmp_path: Path, store: Path):
    follow(searched(tmp_path, 2), "stopped", project="a search", entity="team")
    found = {each.run["display_name"]: each for each in runs(store)}
    name = next(name for name in found if "/" not in name)
    trials = {f"{name}/trial-{number}" for number in (1, 2)}
    assert {each: found[each].run.get("run_group") for each in found} == {name: None, **dict.fromkeys(trials, name)}
    assert {found[each].config["trainjob.parent"] for each in trials} == {found[name].run["run_id"]}
    assert {(each.run["project"], each.run["entity"]) for each in found.values()} == {("a search", "team")}


def test_a_server_that_is_away_is_told_without_the_key_and_caught_up(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
):
    run, key = write_run(tmp_path, TEXT_JOB, [step(1, loss=1.0)]), "a" * 40
    monkeypatch.setattr("trainjob.tracking.wandb._TIMEOUT_SECONDS", 1.0)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", key)
    tracking = follow(run, "stopped", uri="http://127.0.0.1:9")
    assert tracking.status.message
    assert key not in tracking.status.message
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracking.write("stopped")  # with the id that the client says is in use
    assert not tracking.status.message
    assert [row["_step"] for row in runs(store)[-1].rows] == [1]


def test_a_pod_does_not_write_offline_to_its_own_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WANDB_DIR")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "set WANDB_DIR" in follow(write_run(tmp_path, TEXT_JOB, []), "stopped").status.message
