"""A Ray cluster on this machine that does not start, and datasets that come later than Ray Train asks for them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJobSpec
from trainjob.errors import TransientError
from trainjob.interrupts import in_thread
from trainjob.launch.fast.late_datasets import LateDatasets
from trainjob.launch.ray_cluster import seconds_between_polls, start_ray

SPEC = TrainJobSpec.model_validate({"model": {"imageClassifier": {"mlp": {}}}, "dataset": {"train": {"uri": "/data"}}})


def test_a_cluster_that_does_not_start_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "file"))
    with pytest.raises(TransientError, match=r"Ray does not start on this machine \(.*\)\. It may be too busy"):
        start_ray(SPEC, 1)


def test_ray_that_was_imported_too_early_is_told_at_once():
    program = (
        "import os, ray\n"
        "os.environ['RAY_AUTH_MODE'] = 'token'\n"
        "from trainjob.api import TrainJobSpec\n"
        "from trainjob.launch.ray_cluster import start_ray\n"
        f"start_ray(TrainJobSpec.model_validate({SPEC.model_dump(by_alias=True, exclude_unset=True)!r}), 1)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert "Ray was imported before the run and does not know RAY_AUTH_MODE=token" in done.stderr


def test_a_getter_waits_for_its_dataset(tmp_path: Path):
    datasets = LateDatasets(tmp_path)
    found = [in_thread(datasets.getter(name)) for name in ("train", "test")]
    assert not any(each.done() for each in found)
    provided: Any = {name: f"rows of {name}" for name in ("train", "test")}  # whatever can be pickled
    datasets.provide(provided)
    assert [each.result(60) for each in found] == ["rows of train", "rows of test"]


@pytest.mark.parametrize(("workers", "seconds"), [(1, 0.2), (20, 0.2), (64, 0.64), (512, 5.12)])
def test_many_workers_are_asked_less_often(workers: int, seconds: float):
    assert seconds_between_polls(workers) == pytest.approx(seconds)
