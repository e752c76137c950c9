"""Runs with `dataset.onBadRows: drop` come to the same end as runs on the other rows alone, also after a kill."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from minio_server import MinIO
from training_runs import STREAMED, Finished, Run, kill_driver, kill_worker
from typer.testing import CliRunner

from trainjob.cli.app import app
from trainjob.errors import DataError, Notice
from trainjob.storage import Folder

pytestmark = pytest.mark.nightly

NewRun = Callable[..., Run]
BAD_TRAINING = {0: 'alone,"x"', 100: "no label,text,", 300: "other width,text,red,4", 599: "odd,class,lonely"}
BAD_TEST = {3: "a,b,unknown", 9: "a,b,", 150: "a,b,lonely"}


@pytest.fixture
def changes(text_set: Path, tmp_path: Path, minio: MinIO, bucket: str) -> dict[str, Any]:
    """Changes to a text run: its rows on S3, with others that cannot be used between them."""
    for name, bad in (("train", BAD_TRAINING), ("test", BAD_TEST)):
        header, *lines = (text_set / f"{name}.csv").read_text().splitlines()
        for place, line in bad.items():
            lines.insert(place, line)
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines, ""]))
        Folder(f"s3://{bucket}", minio.endpoint).upload(tmp_path / f"{name}.csv", f"{name}.csv")
    return {
        "dataset.train": {"uri": f"s3://{bucket}/train.csv"},
        "dataset.test": {"uri": f"s3://{bucket}/test.csv"},
        "dataset.onBadRows": "drop",
        "storage.endpoint": minio.endpoint,
        "baselines": None,
        "retries": 1,
    }


def assert_same_end(run: Run, whole: Run) -> None:
    """Compares the ends of two runs, baselines included, and checks that each bad row is counted once."""
    run.assert_same_end(whole)
    assert baseline_scores(run) == baseline_scores(whole)
    assert predictions(run).equals(predictions(whole))
    sets = run.read("summary.json")["data"]["sets"]
    assert (sets["train"]["sourceRows"], sets["test"]["sourceRows"]) == (605, 154)
    assert sum(each["rows"] for each in sets["train"]["dropped"]) == len(BAD_TRAINING)
    assert sum(each["rows"] for each in sets["test"]["dropped"]) == len(BAD_TEST)


def baseline_scores(run: Run) -> dict[str, Any]:
    return {each["name"]: each["standing"] for each in run.read("baselines.json")["baselines"]}


def predictions(run: Run) -> pa.Table:
    return pq.read_table(run.folder / "predictions" / "model.parquet").drop(["file", "file_row"])


def test_local_processes(
    new_run: NewRun,
    changes: dict[str, Any],
    local: Finished,
    minio: MinIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    run = new_run("text", changes | {"dataset.loader": "dataLoader"}, "tags")
    run.end_at_checkpoint(kill_driver)
    run.kill_at(lambda checkpoints: len(checkpoints) > 1, kill_worker)
    assert_same_end(run, local[0])

    monkeypatch.setenv("AWS_ENDPOINT_URL", minio.endpoint)
    arguments = ["evaluate", "--json", str(run.folder), changes["dataset.test"]["uri"]]
    with pytest.warns(Notice, match=r"/test\.csv: left out 3 of \d+ rows"):
        scored = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert json.loads(scored.stdout)["confusion"] == run.read("evaluation.json")["test"]["confusion"]
    with pytest.raises(DataError, match=r"2 rows: .*/train\.csv, row 1: 2 values; row 301: 4 values"):
        CliRunner().invoke(app, ["predict", str(run.folder), changes["dataset.train"]["uri"]], catch_exceptions=False)

    teacher = {"training.distillation": {"teacher": str(run.folder)}, "dataset.unlabelled": changes["dataset.train"]}
    student = new_run("text", changes | teacher | {"dataset.loader": "dataLoader", "baselines": {}}, "student")
    student.finish()
    labels = [pq.read_table(file) for file in sorted((student.folder / "soft-labels").iterdir())]
    rows = student.read("fitted/split.json")["rows"]
    assert [len(table) for table in labels] == [rows["train"], rows["unlabelled"]]
    assert rows["unlabelled"] == 603  # of what has no label, two rows can be used


@pytest.mark.usefixtures("warm_ray")
def test_streamed_rows(new_run: NewRun, changes: dict[str, Any]):
    whole = new_run("text", {"baselines": None}, "whole")
    run = new_run("text", changes)
    whole.first = run.first = STREAMED
    whole.finish()
    run.kill_at(lambda checkpoints: len(checkpoints) > 1, kill_driver)
    run.finish()
    assert_same_end(run, whole)
