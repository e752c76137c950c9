"""The records of a run, in files of bounded size, over several attempts."""

import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from trainjob.api import Checkpoints
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.history import History, is_last_best, read_history
from trainjob.storage import Folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr("trainjob.runs.history.SEGMENT_RECORDS", 10)
    folder = Folder(str(tmp_path / "run"))
    folder.write(ATTEMPTS, b"{}")
    return folder


def opened(run: Folder, tmp_path: Path) -> History:
    return History(run, tmp_path / f"attempt-{len(list(tmp_path.iterdir()))}")


def measure(history: History, steps: range, loss: float = 1.0, flush_every: int = 4) -> None:
    for step in steps:
        history.add("step", step, 1, {"loss": loss})
        if step % flush_every == 0:
            history.flush()


def written(run: Folder) -> dict[str, list[int]]:
    """The steps in each file."""
    files = [Path(run.uri) / "metrics.jsonl", *sorted(Path(run.uri, "metrics").glob("*"))]
    return {file.name: [json.loads(line)["step"] for line in file.read_text().splitlines()] for file in files}


def steps(records: list[dict[str, Any]]) -> list[int]:
    return [record["step"] for record in records]


def test_a_long_run_has_several_files_which_are_read_as_one(run: Folder, tmp_path: Path):
    measure(opened(run, tmp_path), range(1, 33))
    assert written(run) == {
        "metrics.jsonl": [*range(1, 13)], "000001.jsonl": [*range(13, 25)], "000002.jsonl": [*range(25, 33)]
    }  # fmt: skip
    assert steps(read_history(run)) == [*range(1, 33)]


def test_only_the_latest_file_is_written(run: Folder, tmp_path: Path):
    history = opened(run, tmp_path)
    measure(history, range(1, 13))
    before = Path(run.uri, "metrics.jsonl").stat().st_mtime_ns
    measure(history, range(13, 29))
    assert Path(run.uri, "metrics.jsonl").stat().st_mtime_ns == before


@pytest.mark.parametrize("step", [0, 1, 11, 12, 13, 20, 24, 25, 32])
def test_what_came_after_a_checkpoint_is_measured_again(run: Folder, tmp_path: Path, step: int):
    measure(opened(run, tmp_path), range(1, 33), loss=1.0)
    history = opened(run, tmp_path)
    assert history.resume(step) == step
    measure(history, range(step + 1, step + 7), loss=2.0, flush_every=1)
    records = read_history(run)
    assert steps(records) == [*range(1, step + 7)]
    assert [record["loss"] for record in records] == [1.0] * step + [2.0] * 6


def test_without_a_checkpoint_all_is_measured_again(run: Folder, tmp_path: Path):
    measure(opened(run, tmp_path), range(1, 33))
    measure(opened(run, tmp_path), range(1, 5), loss=2.0)
    assert [record["loss"] for record in read_history(run)] == [2.0] * 4


@pytest.mark.parametrize("step", [25, 30, None])
def test_the_one_file_of_an_earlier_version_is_continued(run: Folder, tmp_path: Path, step: int | None):
    records = [{"kind": "step", "step": step, "epoch": 1, "time": 0.0, "loss": 1.0} for step in range(1, 31)]
    run.write("metrics.jsonl", "".join(json.dumps(record) + "\n" for record in records).encode())
    history = opened(run, tmp_path)
    last = history.resume(step)
    measure(history, range(last + 1, last + 13))
    assert steps(read_history(run)) == [*range(1, last + 13 - (last + 12) % 4)]
    assert list(written(run)) == ["metrics.jsonl", "000001.jsonl"]


def test_tensorboard_shows_each_step_once(run: Folder, tmp_path: Path):
    measure(opened(run, tmp_path), range(1, 33), loss=1.0)
    history = opened(run, tmp_path)
    history.resume(16)
    measure(history, range(17, 41), loss=2.0)
    folder = Path(run.uri, "tensorboard")
    assert len(list(folder.iterdir())) > 2
    shown = EventAccumulator(str(folder)).Reload().Scalars("step/loss")
    assert [(each.step, each.value) for each in shown] == [(step, 1.0 if step <= 16 else 2.0) for step in range(1, 41)]


@pytest.mark.parametrize(
    ("values", "expected"), [([], False), ([0.5], True), ([0.5, 0.4], True), ([0.4, 0.5], False), ([0.4, 0.4], False)]
)
def test_whether_the_last_validation_is_the_best(run: Folder, tmp_path: Path, values: list[float], expected: bool):
    history = opened(run, tmp_path)
    for epoch, value in enumerate(values, start=1):
        history.add("epoch", 2 * epoch, epoch, {"validation_loss": value})
        history.add("step", 2 * epoch + 1, epoch + 0.5, {"loss": 0.1})
    assert is_last_best(history.records, Checkpoints(metric="validation_loss")) == expected
