"""From a run on this machine to a pulled model of the cluster that predicts, by the quickstart's four commands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from e2e.train_jobs import LONG, TrainJobs
from pages import ROOT


def commands() -> list[list[str]]:
    """The commands of the page's block that begins with `trainjob run`."""
    page = (ROOT / "docs" / "quickstart.md").read_text()
    [block] = re.findall(r"```console\n(\$ trainjob run .*?)```", page, re.DOTALL)
    return [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]


def test_the_same_file_trains_here_and_on_the_cluster(jobs: TrainJobs, tmp_path: Path) -> None:
    (tmp_path / "trainjob.yaml").write_text(jobs.readme())
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(jobs.cluster.kubeconfig.read_bytes())
    jobs.cluster.kubectl(
        "config", "set-context", "--current", "--namespace", jobs.namespace, "--kubeconfig", kubeconfig
    )
    environment = os.environ | jobs.store.credentials | {"KUBECONFIG": str(kubeconfig)}
    run, *others = commands()
    assert [command[1] for command in others] == ["submit", "pull", "predict"]
    for command in (run, *others):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LONG,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert "class" in done.stdout
    assert (tmp_path / "runs" / "project-tags" / "model" / "model.safetensors").exists()
    assert (tmp_path / "project-tags" / "model" / "model.safetensors").exists()
