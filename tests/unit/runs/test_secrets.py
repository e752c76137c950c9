"""Secrets of a TrainJob reach neither its run's folder nor any message about the run."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.errors import DataError, Notice, UserError, notify
from trainjob.launch.worker_errors import WorkerError, failure_of
from trainjob.redaction import has_hidden, hidden, without_secrets
from trainjob.runs.files import TRAINJOB
from trainjob.runs.folder import begin_attempt, read_job, run_folder

SIGNED = "https://data.example/train.csv?versionId=7&X-Amz-Credential=AKIAXYZ&X-Amz-Signature=c0ffee"


def trainjob(
    folder: Path, uri: str = SIGNED, value: str = "hunter2", uris: list[str] | None = None, **metadata: Any
) -> TrainJob:
    document: dict[str, Any] = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", **metadata},
        "spec": {
            "model": {"function": {"name": "train:loop", "config": {"db": f"postgres://me:{value}@db/x"}}},
            "dataset": {"train": {"uris": uris} if uris else {"uri": uri}},
            "storage": {"uri": str(folder)},
            "pods": {"env": [{"name": "API_KEY", "value": value}, {"name": "FROM", "valueFrom": {"secretKeyRef": {}}}]},
        },
    }
    return TrainJob.model_validate(document)


def test_a_runs_folder_has_no_secrets_and_is_still_a_trainjob(tmp_path: Path):
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"value": "hunter2"}', "mine": "kept"}
    job = trainjob(tmp_path, annotations=applied)
    begin_attempt(run_folder(job), job)
    text = (tmp_path / "job" / TRAINJOB).read_text()
    for secret in ("hunter2", "AKIAXYZ", "c0ffee", "versionId"):
        assert secret not in text
    kept = read_job(run_folder(job))
    assert kept.metadata.annotations == {"mine": "kept"}
    assert kept.spec.dataset is not None
    assert str(kept.spec.dataset.train.uri).startswith("https://data.example/train.csv?<hidden:")
    assert kept.spec.model.function is not None
    assert kept.spec.model.function.config == {"db": "postgres://<hidden>@db/x"}
    assert kept.spec.pods.env == [
        {"name": "API_KEY", "value": hidden("hunter2")},
        {"name": "FROM", "valueFrom": {"secretKeyRef": {}}},
    ]
    assert job.spec.pods.env[0]["value"] == "hunter2", "the TrainJob itself is left as it is"


def test_lists_of_addresses_keep_no_secrets(tmp_path: Path):
    job = trainjob(tmp_path, uris=[SIGNED, "s3://bucket/b.csv"])
    begin_attempt(run_folder(job), job)
    run_folder(job).write("metrics.jsonl", b"")  # something has come of it
    text = (tmp_path / "job" / TRAINJOB).read_text()
    assert "c0ffee" not in text
    assert "s3://bucket/b.csv" in text
    signed_anew = SIGNED.replace("c0ffee", "decaf")
    assert begin_attempt(run_folder(job), trainjob(tmp_path, uris=[signed_anew, "s3://bucket/b.csv"])).count == 2
    with pytest.raises(UserError, match=r"dataset\.train\.uris") as error:
        begin_attempt(run_folder(job), trainjob(tmp_path, uris=[SIGNED, "s3://bucket/c.csv"]))
    assert "c0ffee" not in str(error.value)


def test_a_new_signature_continues_a_run_and_another_query_does_not(tmp_path: Path):
    job = trainjob(tmp_path)
    begin_attempt(run_folder(job), job)
    run_folder(job).write("metrics.jsonl", b"")  # something has come of it
    signed_anew = SIGNED.replace("c0ffee", "decaf") + "&X-Amz-Date=20261123"
    assert begin_attempt(run_folder(job), trainjob(tmp_path, signed_anew, value="other")).count == 2
    with pytest.raises(UserError, match=r"dataset\.train\.uri") as error:
        begin_attempt(run_folder(job), trainjob(tmp_path, SIGNED.replace("versionId=7", "versionId=8")))
    assert "c0ffee" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        SIGNED,
        f"{SIGNED}: the server answers 403; correct the URI",
        f"cannot read '{SIGNED}' and ({SIGNED}).",
        "http://h?a='x'&sig=c0ffee",
        "https://me:c0ffee@h/x",
        "redis://:c0ffee@h:6379",
        "https://me:p@c0ffee@h/x?c0ffee=1",
        "HTTPS_PROXY=http://me:c0ffee@proxy",
    ],
)
def test_addresses_in_any_text(text: str):
    shown = without_secrets(text)
    assert "c0ffee" not in shown
    assert "hidden" in shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text", ["s3://bucket/part-?.csv", "gs://b/x@y", "C:/what?now", "https://h/x#y", "really? https://h/x", "me@h", ""]
)
def test_what_is_no_secret_stays(text: str):
    assert without_secrets(text) == text
    assert not has_hidden(text)


def test_what_is_said_of_a_run_has_no_secrets():
    error = pickle.loads(pickle.dumps(DataError(f"{SIGNED}, row 7: no label")))
    assert str(error) == without_secrets(str(error))
    assert str(error).endswith(", row 7: no label")
    worker = WorkerError(1, "OSError", f"cannot open {SIGNED}", f"File x\nOSError: {SIGNED}", 0.0)
    for failure in (failure_of(worker, False), failure_of(OSError(SIGNED), False), failure_of(error, False)):
        assert "c0ffee" not in failure.model_dump_json()
    assert "c0ffee" not in str(worker)
    with pytest.warns(Notice) as notices:
        notify(f"{SIGNED} was rewritten")
    assert "c0ffee" not in str(notices[0].message)


def test_a_user_in_an_address_is_refused_without_being_said(tmp_path: Path):
    file = tmp_path / "trainjob.yaml"
    file.write_text(
        "apiVersion: trainjob.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: job}\n"
        "spec:\n  model: {function: {name: 'train:loop'}}\n  dataset:\n"
        "    train: {uri: 'https://me:hunter2@h/x.csv'}\n    test: {uris: [s3://a, 'https://me:hunter2@h/x.csv']}\n"
        "  storage: {uri: runs, endpoint: 'http://me:hunter2@minio:9000'}\n"
    )
    with pytest.raises(UserError) as error:
        load_trainjob(file)
    assert "spec.dataset.train.uri" in str(error.value)
    assert "spec.dataset.test.uris[1]" in str(error.value)
    assert "spec.storage.endpoint" in str(error.value)
    assert "without a user" in str(error.value)
    assert "hunter2" not in str(error.value)
