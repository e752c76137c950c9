"""Writing a run to a tracker: what is written, how often, and what a failure costs. The tracker is one of another
package, which keeps each call as a line of a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from report_runs import TEXT_JOB, epoch, finish, searched, step, write_run
from trainjob.api.load import with_overrides
from trainjob.cli.app import app
from trainjob.errors import UserError
from trainjob.report.render import render
from trainjob.runs.folder import read_job
from trainjob.runs.tracked import Tracked
from trainjob.storage import Folder
from trainjob.tracking.follow import RunTracking
from trainjob.tracking.sync import first_new
from trainjob.tracking.tracker import EndState

PACKAGE = """
import json
from pathlib import Path

class Tracker:
    registers_models = False

    def __init__(self, options, job_name):
        self.file = Path(options["file"])

    def tell(self, *call):
        if self.file.with_suffix(".down").exists():
            raise OSError("http://me:secret@tracker answers 507")
        with self.file.open("a") as file:
            file.write(json.dumps(call) + chr(10))

    def begin(self, run, known, parent):
        self.tell("begin", run.name, known, parent, dict(run.parameters), dict(run.tags))
        return known or f"id of {run.name}", "https://tracker/" + run.name

    def log(self, run_id, records):
        self.tell("log", run_id, [record["step"] for record in records])

    def end(self, run_id, results):
        self.tell("end", run_id, results.state, dict(results.metrics), [file.name for file in results.files])
"""
CALLS = "calls.jsonl"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[Any]]]:
    """Installs the tracker `lines`; returns how it was called."""
    (tmp_path / "line_tracker.py").write_text(PACKAGE)
    (installed := tmp_path / "lines-1.0.dist-info").mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[trainjob.trackers]\nlines = line_tracker:Tracker\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "line_tracker", raising=False)
    return lambda: [json.loads(line) for line in (tmp_path / CALLS).read_text().splitlines()]


def follow(run: Folder, tmp_path: Path, state: EndState | None, name: str = "lines") -> RunTracking:
    """Follows a run as a new process does."""
    tracking = [{"custom": {"name": name, "options": {"file": str(tmp_path / CALLS)}}}]
    job = with_overrides(run.read("trainjob.yaml").decode(), "x", [f"spec.tracking={json.dumps(tracking)}"])
    tracking = RunTracking(run, job, job.spec.tracking[0])
    tracking.write(state)
    return tracking


def steps(calls: list[list[Any]]) -> list[int]:
    return [number for call in calls if call[0] == "log" for number in call[2]]


def write_records(run: Folder, *numbers: float) -> None:
    """Records of these steps; each is written later than those before it."""
    lines = [json.dumps(step(int(number), loss=1.0) | {"time": number}) for number in numbers]
    run.write("metrics.jsonl", "".join(f"{line}\n" for line in lines).encode())


def test_a_run_of_several_attempts_is_one_run_and_each_record_is_written_once(tmp_path: Path, calls: Any):
    run = write_run(tmp_path, TEXT_JOB, [])
    write_records(run, 1, 2, 3)
    assert follow(run, tmp_path, None).status.url == "https://tracker/" + read_job(run).metadata.name
    follow(run, tmp_path, "stopped")
    write_records(run, 1, 2, 3.5, 4)  # step 3 was trained again
    follow(run, tmp_path, None)
    write_records(run, 1, 2, 3.5, 4, 5)
    finish(run, ["a", "b", "c"])
    for _ in range(2):
        follow(run, tmp_path, "stopped")
    found = calls()
    assert steps(found) == [1, 2, 3, 3, 4, 5]
    begun = [call for call in found if call[0] == "begin"]
    assert [call[2] for call in begun] == ["", *[f"id of {begun[0][1]}"] * 3]
    assert begun[0][4]["training.epochs"] == str(read_job(run).spec.training.epochs)
    ends = [call for call in found if call[0] == "end"]
    assert [call[2] for call in ends] == ["stopped", "finished"]
    assert ends[1][3]["best/test_accuracy"] == json.loads(run.read("evaluation.json"))["test"]["accuracy"]
    assert 'href="https://tracker/' in render(run)


def test_a_tracker_that_fails_is_told_without_secrets_and_caught_up(tmp_path: Path, calls: Any):
    run = write_run(tmp_path, TEXT_JOB, [])
    write_records(run, 1, 2)
    follow(run, tmp_path, None)
    (down := tmp_path / "calls.down").touch()
    write_records(run, 1, 2, 3)
    failed = follow(run, tmp_path, None).status
    assert failed.message == "http://<hidden>@tracker answers 507"
    assert failed.url.startswith("https://tracker/")
    down.unlink()
    follow(run, tmp_path, None)
    assert steps(calls()) == [1, 2, 3]


def test_a_search_is_a_parent_with_its_trials(tmp_path: Path, calls: Any):
    run = searched(tmp_path, 3)
    for _ in range(2):
        follow(run, tmp_path, "stopped")
    found = calls()
    name = read_job(run).metadata.name
    begun = {call[1]: call[3] for call in found if call[0] == "begin"}
    assert begun == {name: "", **{f"{name}/trial-{number}": f"id of {name}" for number in (1, 2, 3)}}
    ends = [(call[1].rpartition("-")[2], call[2]) for call in found if call[0] == "end"]
    assert sorted(ends[:3]) == [("1", "finished"), ("2", "finished"), ("3", "failed")]
    assert steps(found) == [10, 20, 10, 20]


def test_a_trackers_package_that_is_missing_is_named(tmp_path: Path, calls: Any):
    tracking = follow(write_run(tmp_path, TEXT_JOB, []), tmp_path, None, "aim")
    assert tracking.status.message == "no installed package has an entry point aim in trainjob.trackers (found: lines)"


@pytest.mark.parametrize(
    ("tracking", "message"),
    [
        ([{"mlflow": {"uri": "http://a:1"}}, {"mlflow": {"uri": "http://b:1"}}], "names a tracker twice"),
        ([{"mlflow": {"uri": "http://a:1"}}, {"custom": {"name": "mlflow"}}], "names a tracker twice"),
        ([{"trackio": {}}, {"trackio": {"uri": "http://b:1"}}], "names a tracker twice"),
        ([{"wandb": {}}, {"wandb": {"entity": "team"}}], "names a tracker twice"),
        ([{"wandb": {"project": "a/b"}}], "without the characters"),
        ([{"mlflow": {"uri": "http://me:secret@a:1"}}], "uri"),
        ([{"mlflow": {"uri": "http://a:1?token=secret"}}], "uri"),
        ([{"mlflow": {"uri": "mlruns"}}], "uri"),
    ],
)
def test_trackers_that_are_refused(tracking: list[Any], message: str):
    with pytest.raises(UserError, match=message):
        with_overrides(TEXT_JOB, "x", [f"spec.tracking={json.dumps(tracking)}"])


def test_a_record_with_an_earlier_time_is_new_where_nothing_was_dropped():
    records = [{"time": 5.0}, {"time": 4.0}]
    assert first_new(records, Tracked(key="k", records=1, last=5.0)) == 1
    assert first_new([{"time": 1.0}], Tracked(key="k", records=2, last=5.0)) == 1


def test_track_names_what_is_missing(tmp_path: Path):
    run = write_run(tmp_path, TEXT_JOB, [epoch(1, loss=1.0)])
    done = CliRunner().invoke(app, ["track", run.uri])
    assert isinstance(done.exception, UserError)
    assert "names no tracker: add --set" in str(done.exception)
