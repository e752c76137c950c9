"""`dataset.loader: auto`: what is chosen, what a resumed run keeps, and how much memory is free."""

import re
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.data import Fitted, fit
from trainjob.driver import loader
from trainjob.driver.loader import (
    free_in_cgroups,
    free_memory,
    reason_by_files,
    reason_by_rows,
    record_loader,
    resolve_loader,
)
from trainjob.runs.files import FITTED
from trainjob.runs.folder import begin_attempt, check_same_spec, read_job
from trainjob.storage import Folder

V2 = "0::/pod/container\n"
V1 = "9:name=systemd:/\n4:memory:/docker/abc\n1:cpu:/docker/abc\n"


@pytest.fixture
def job(tmp_path: Path) -> TrainJob:
    (tmp_path / "rows.csv").write_text("text,label\n" + "".join(f"text {row},{row % 2}\n" for row in range(40)))
    dataset = {"train": {"uri": str(tmp_path / "rows.csv")}, "text": ["text"], "label": "label"}
    return TrainJob.model_validate(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "job"},
            "spec": {"model": {"textClassifier": {"encoder": {}}}, "dataset": dataset},
        }
    )


@pytest.fixture
def run(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "runs" / "job"))


def changed(job: TrainJob, **changes: Any) -> TrainJob:
    document = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    for path, value in changes.items():
        part = document["spec"]
        *parents, last = path.split("__")
        for parent in parents:
            part = part[parent]
        part[last] = value
    return TrainJob.model_validate(document)


def loader_of(job: TrainJob) -> str:
    assert job.spec.dataset is not None
    return job.spec.dataset.loader


def test_a_new_run_on_this_machine_chooses_once_the_rows_are_counted(job: TrainJob, run: Folder):
    assert loader_of(resolve_loader(job, run, fresh=False)) == "auto"


def test_ray_is_chosen_at_once_where_it_is_needed(job: TrainJob, run: Folder, monkeypatch: pytest.MonkeyPatch):
    searched = changed(job, tuning={"parameters": {"training.epochs": {"choice": [1, 2]}}, "trials": 2})
    function = changed(job, model={"function": {"name": "train:loop"}})
    assert loader_of(resolve_loader(searched, run, fresh=False)) == "rayData"
    assert loader_of(resolve_loader(function, run, fresh=False)) == "rayData"
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert loader_of(resolve_loader(job, run, fresh=False)) == "rayData"


def test_what_the_user_says_stays(job: TrainJob, run: Folder, monkeypatch: pytest.MonkeyPatch):
    local = changed(job, dataset__loader="dataLoader")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert resolve_loader(local, run, fresh=False) == local


@pytest.mark.parametrize("stored", ["rayData", "dataLoader"])
def test_a_run_continues_with_the_loader_that_it_began_with(job: TrainJob, run: Folder, stored: str):
    begin_attempt(run, job)
    fit(job.spec).save(run / FITTED)
    record_loader(run, stored)
    assert loader_of(read_job(run)) == stored
    again = resolve_loader(job, run, fresh=False)
    assert loader_of(again) == stored
    check_same_spec(run, again)
    assert loader_of(resolve_loader(job, run, fresh=True)) == "auto"


def test_few_rows_need_no_ray(job: TrainJob):
    assert reason_by_files(job.spec) is None
    assert reason_by_rows(job.spec, fit(job.spec)) is None


def test_too_many_rows_are_told_with_what_there_is_room_for(job: TrainJob, monkeypatch: pytest.MonkeyPatch):
    fitted: Fitted = fit(job.spec)
    monkeypatch.setattr(loader, "free_memory", lambda: 100)
    size = r"\d[\d.]* (B|KiB)"
    assert re.fullmatch(
        rf"the prepared rows take {size}, more than half of this machine's free memory of 100 B",
        reason_by_rows(job.spec, fitted) or "",
    )
    assert (reason_by_files(job.spec) or "").endswith("more than this machine's free memory of 100 B")


def test_free_memory_is_that_of_the_machine_and_of_its_containers(tmp_path: Path):
    machine = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    assert 0 < free_memory() <= int(machine.split()[1]) * 1024


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        (V2, {"pod/memory.max": "1000", "pod/memory.current": "300", "pod/memory.stat": "anon 1\ninactive_file 100"}),
        (V2, {"memory.max": "1000", "memory.current": "200", "memory.stat": "anon 1"}),
        (
            V1,
            {
                "memory/memory.limit_in_bytes": "1000",
                "memory/memory.usage_in_bytes": "250",
                "memory/memory.stat": "inactive_file 50",
            },
        ),
        (V2, {"memory.max": "max", "memory.current": "200", "memory.stat": "anon 1"}),
        (V2, {}),
    ],
    ids=["pod", "own root", "version 1", "no limit", "no groups"],
)
def test_limits_of_control_groups(tmp_path: Path, groups: str, files: dict[str, str]):
    (tmp_path / "cgroup").write_text(groups)
    for name, content in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    limited = any("1000" in content for content in files.values())
    assert list(free_in_cgroups(tmp_path / "cgroup", tmp_path / "fs")) == ([800] if limited else [])
