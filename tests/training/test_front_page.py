"""The TrainJob that README and the quickstart show, as it stands there."""

from pathlib import Path

import pytest
from minio_server import MinIO
from training_runs import ENVIRONMENT_STAYS, Run

from pages import trainjob_of
from tiny_sets import write_projects
from trainjob.storage import Folder


@pytest.mark.nightly
@pytest.mark.usefixtures("warm_ray")
def test_readmes_trainjob_learns(tmp_path: Path, minio: MinIO, bucket: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", minio.endpoint)
    write_projects(tmp_path / "projects.csv", 201)
    Folder(f"s3://{bucket}", minio.endpoint).upload(tmp_path / "projects.csv", "projects.csv")
    run = Run(tmp_path / "trainjob.yaml", tmp_path / "runs" / "project-tags")
    run.first = ENVIRONMENT_STAYS  # requests to S3 read it on other threads
    run.file.write_text(trainjob_of("README.md", f"s3://{bucket}/projects.csv"))
    run.finish()
    assert run.read("evaluation.json")["validation"]["macro"]["f1"] > 0.5
    assert (run.folder / "report.html").exists()
