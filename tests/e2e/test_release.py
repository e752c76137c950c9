"""The chart is upgraded, rolled back, uninstalled and installed again while a job trains."""

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.client import Cluster
from cluster.jobs import eventually
from e2e.object_store import BUCKET, ENDPOINT
from e2e.train_jobs import LONG, TrainJobs
from earlier_chart import checkout_before
from kind.engine import sh
from kind.images import ROOT
from kind.install import install_chart
from servers.programs import program

UNTIL_END_FILE = """
    import time

    from pyarrow import fs
    from ray import train

    def train_loop(config):
        store, folder, step = fs.S3FileSystem(endpoint_override=config["endpoint"]), config["folder"], 0
        while store.get_file_info(f"{folder}/end").type == fs.FileType.NotFound:
            step += 1
            with store.open_output_stream(f"{folder}/step") as stream:
                stream.write(str(step).encode())
            train.report({"step": step})
            time.sleep(1)
"""


@pytest.mark.alone
def test_a_job_outlives_upgrade_rollback_and_uninstallation(jobs: TrainJobs, cluster: Cluster, tmp_path: Path) -> None:
    operator, trainer = images(cluster)
    install_chart(cluster, operator, trainer, checkout_before(tmp_path), "--skip-schema-validation")
    try:
        folder = f"{BUCKET}/{jobs.namespace}/own"
        jobs.submit_function(UNTIL_END_FILE, {"endpoint": ENDPOINT, "folder": folder}, workers={"count": 1})
        until_reported(jobs, 1)
        made = what_was_made(jobs)
        install_chart(cluster, operator, trainer, ROOT, "--set=replicas=2")
        until_reported(jobs, step(jobs, folder))
        assert what_was_made(jobs) == made
        helm(cluster, "rollback", "--wait")
        until_reported(jobs, step(jobs, folder))
        assert what_was_made(jobs) == made
        helm(cluster, "uninstall", "--wait")
        reached = step(jobs, folder)
        eventually(lambda: step(jobs, folder) > reached, LONG, lambda: f"without the operator: step {reached}")
        assert what_was_made(jobs) == made
        jobs.store.write(f"{folder}/end", b"")
        jobs.kubectl(
            "wait", "rayjob/job", "--for=jsonpath={.status.jobDeploymentStatus}=Complete", f"--timeout={LONG}s"
        )
        assert jobs.status()["phase"] == "Running"
        install_chart(cluster, operator, trainer)
        assert jobs.until_phase("Succeeded")["attempt"] == 1
    finally:
        install_chart(cluster, operator, trainer)


def helm(cluster: Cluster, command: str, *options: str) -> str:
    """Helm's output about the release."""
    own = ("--namespace", "trainjob-system", "--kubeconfig", cluster.kubeconfig)
    return sh(program("helm"), *command.split(), "trainjob", *own, *options)


def images(cluster: Cluster) -> tuple[str, str]:
    """The operator's and the trainer's, as the release has them."""
    values = json.loads(helm(cluster, "get values", "--output=json"))
    operator, trainer = values["image"], values["trainer"]["image"]
    return f"{operator['repository']}:{operator['tag']}", f"{trainer['repository']}:{trainer['tag']}"


def what_was_made(jobs: TrainJobs) -> list[Any]:
    """The job's RayJob as it was last specified, and its pods."""
    ray_job = jobs.ray_job()
    metadata = ray_job["metadata"]
    pods = sorted(pod["metadata"]["uid"] for pod in jobs.cluster.find("pods", jobs.namespace))
    return [metadata["uid"], metadata["generation"], pods, ray_job["spec"]]


def step(jobs: TrainJobs, folder: str) -> int:
    """The step that training reports."""
    return int(jobs.store.read(f"{folder}/step") or 0)


def until_reported(jobs: TrainJobs, step: int) -> None:
    """Waits until the status says that training has come there."""
    jobs.until_true(lambda status: status.get("training", {}).get("metrics", {}).get("step", 0) >= step, f"step {step}")
