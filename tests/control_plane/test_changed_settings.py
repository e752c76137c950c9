"""Settings that change while the operator runs."""

from pathlib import Path

import yaml
from operator_process import SETTINGS, OperatorProcess

from cluster.jobs import Jobs, eventually


def test_an_operator_restarts_with_changed_settings(jobs: Jobs, process: OperatorProcess, tmp_path: Path):
    file = tmp_path / "settings.yaml"
    jobs.create("early")
    assert image(jobs, "early") == SETTINGS["image"]
    before = file.read_text()
    file.write_text("imag: typo")
    eventually(lambda: "trainjob_settings_refused 1.0" in process.get("/metrics"))
    assert "imag" in process.log.read_text()
    file.write_text(yaml.safe_dump({**yaml.safe_load(before), "image": "registry.example/trainjob:2"}))
    eventually(lambda: "the settings have changed; restarting" in process.log.read_text())
    process.wait_ready()
    jobs.create("late")
    assert image(jobs, "late") == "registry.example/trainjob:2"
    assert image(jobs, "early") == SETTINGS["image"]


def image(jobs: Jobs, name: str) -> str:
    return jobs.ray_job(name)["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["image"]
