"""The TrainJob that README and the quickstart show, as it stands there."""

from pathlib import Path

import pytest
from training_runs import Run

from pages import trainjob_of
from tiny_sets import write_projects


@pytest.mark.usefixtures("warm_ray")
def test_readmes_trainjob_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_projects(tmp_path / "projects.csv", 301)
    run = Run(tmp_path / "trainjob.yaml", tmp_path / "runs" / "project-tags")
    run.file.write_text(trainjob_of("README.md", "projects.csv"))
    run.finish()
    assert run.read("evaluation.json")["validation"]["macro"]["f1"] > 0.5
    assert (run.folder / "report.html").exists()
