"""Files of several objects, of which one is a TrainJob."""

import io
import os
import threading
from pathlib import Path

import pytest

from trainjob.api.document import InvalidDocument
from trainjob.api.manifest import load_manifest

CODE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: code}, data: {day: 2026-01-02}}"
JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: tags}
spec:
  model: {textClassifier: {pretrained: org/encoder}}
  dataset: {train: {uris: [s3://data/a.csv, s3://data/b.csv]}, text: [title], label: tag}
  retries: null
"""


def load(folder: Path, text: str, *overrides: str) -> list[dict[str, object]]:
    (folder / "job.yaml").write_text(text)
    return load_manifest(folder / "job.yaml", overrides)


def test_all_documents_come_as_an_api_server_takes_them(tmp_path: Path):
    code, job = load(tmp_path, f"{CODE}\n---\n---\n{JOB}", "spec.workers.count=3")
    assert code["data"] == {"day": "2026-01-02"}
    assert job["spec"] == {
        "model": {"textClassifier": {"pretrained": "org/encoder"}},
        "dataset": {"train": {"uris": ["s3://data/a.csv", "s3://data/b.csv"]}, "text": ["title"], "label": "tag"},
        "workers": {"count": 3},
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.dataset.train.uris[1]", "rows/b.csv"),
        ("spec.storage.uri", "runs"),
        ("spec.model.textClassifier.pretrained", "./encoder"),
    ],
)
def test_paths_of_this_machine_are_refused(tmp_path: Path, path: str, value: str):
    storage = "  storage: {uri: s3://runs}\n"
    with pytest.raises(InvalidDocument, match=f"{value} is a path on this machine"):
        load(tmp_path, JOB + storage, f"{path}={value}")
    assert load(tmp_path, JOB + storage, f"{path}=/data/b.csv") != []


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ("{apiVersion: v1, kind: Secret}", "metadata.name  is required of every object"),
        ("{metadata: {name: x}}", "apiVersion  is required of every object"),
        ("[1, 2]", "kind  is required of every object"),
        ("{apiVersion: v1, kind: Secret, metadata: {name: 3}}", "metadata.name  is required of every object"),
    ],
)
def test_other_objects_need_a_name_and_a_kind(tmp_path: Path, other: str, problem: str):
    with pytest.raises(InvalidDocument, match=problem):
        load(tmp_path, f"{JOB}---\n{other}\n")


def test_two_trainjobs_in_a_file_are_refused(tmp_path: Path):
    with pytest.raises(InvalidDocument, match="write a file for each"):
        load(tmp_path, f"{JOB}---\n{JOB}")


def test_a_file_that_can_be_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    content = f"{CODE}\n---\n{JOB}".encode()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    from_pipe = load_manifest(tmp_path / "pipe")
    writer.join()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert load_manifest(Path("-")) == from_pipe
    assert [document["kind"] for document in from_pipe] == ["ConfigMap", "TrainJob"]
