"""Commands on runs take the name of a TrainJob."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import Command

from cluster.jobs import Jobs
from predictor_runs import finish, make_run
from tiny_sets import write_texts
from trainjob.report.render import write_report
from trainjob.runs.attempts import Attempts, write_attempts
from trainjob.storage import Folder

MODEL = {"textClassifier": {"encoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 300}}}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("texts"))


def stored(jobs: Jobs, name: str, folder: Path, phase: str) -> Path:
    """Creates a TrainJob with storage in `folder`, and returns the place of its run."""
    jobs.create(name)
    storage = {"uri": f"file://{folder}"}
    jobs.report("trainjobs", name, {"phase": phase, "reason": phase, "storage": storage})
    uid = jobs.cluster.get("trainjobs", jobs.namespace, name)["metadata"]["uid"]  # pyrefly: ignore
    return folder / f"{name}-{uid[:8]}"


def trained(folder: Path, texts: Path) -> None:
    folder.mkdir(parents=True)
    data = {"train": {"uri": str(texts / "train.csv")}, "text": ["title", "body"], "label": "label"}
    make_run(folder, {"model": MODEL, "dataset": data})
    write_attempts(Folder(str(folder)), Attempts(started=datetime.now(UTC), count=1))
    finish(Folder(str(folder)))
    write_report(Folder(str(folder)))


def test_from_a_job_to_a_pulled_model_that_predicts(
    jobs: Jobs, trainjob: Command, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    run = stored(jobs, "tags", tmp_path / "storage", "Succeeded")
    trained(run, texts)
    from_storage = trainjob("predict", "tags", "--text", "red1 blue2")
    assert (from_storage.code, "probability" in from_storage.out) == (0, True), from_storage
    scored = trainjob("evaluate", "tags", str(texts / "test.csv"), "--json")
    assert "accuracy" in json.loads(scored.out)
    assert trainjob("track", "tags").error.startswith("tags names no tracker: add --set")
    (run / "report.html").unlink()
    assert trainjob("report", "tags").out == f"file://{run}/report.html\n"

    pulled = trainjob("pull", "tags")
    assert (pulled.code, pulled.out) == (0, "tags\n"), pulled
    assert pulled.error.startswith(f"file://{run}: 8 files, ")
    assert trainjob("pull", "tags").error.endswith("; 8 of them in place already\n")
    assert "tags" in trainjob("compare", "tags", "./tags").out
    trainjob("delete", "tags")
    assert trainjob("predict", "tags", "--text", "red1 blue2", namespace="").out == from_storage.out
    gone = trainjob("predict", "tags", "--text", "red1")  # a named namespace is about a TrainJob
    assert (gone.code, gone.error.startswith("there is no TrainJob tags in the namespace")) == (1, True)


def test_a_job_without_a_run_to_read(jobs: Jobs, trainjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    own = f"`trainjob describe tags -n {jobs.namespace}` shows why"
    for command in (["pull", "tags"], ["predict", "tags", "--text", "x"], ["report", "tags"], ["track", "tags"]):
        nothing = trainjob(*command)
        assert nothing.error.startswith(f"there is no TrainJob tags in the namespace {jobs.namespace}"), command
    jobs.create("tags")
    assert trainjob("pull", "tags").error == f"tags has no storage yet: {own}"
    jobs.delete("trainjobs", "tags")
    stored(jobs, "tags", tmp_path / "storage", "Pending")
    assert trainjob("pull", "tags").error == f"tags has not begun to train (Pending): {own}"
    jobs.report("trainjobs", "tags", {"phase": "Succeeded", "reason": "Succeeded"})
    assert "holds no run of tags (Succeeded): it was deleted" in trainjob("pull", "tags").error
    jobs.report("trainjobs", "tags", {"storage": {"uri": None, "persistentVolumeClaim": "runs"}})
    assert trainjob("pull", "tags").error.startswith("tags no longer has a RayJob, which names the image")
    assert not (tmp_path / "tags").exists()
    unknown = trainjob("predict", "nothing", "--text", "x", namespace="")
    assert unknown.error.startswith("there is no folder nothing here; as for a TrainJob of this name: there is no")
    (tmp_path / "nothing").mkdir()
    empty = trainjob("predict", "nothing", "--text", "x", namespace="")
    assert empty.error == "the folder nothing here holds no run; the TrainJob of this name is `-n NAMESPACE nothing`"
