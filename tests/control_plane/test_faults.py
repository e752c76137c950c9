"""Whatever dies meanwhile: in the end each TrainJob has one RayJob and its verdict, and keeps it."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from operator_process import Jobs, OperatorProcess, document, eventually, operator

from cluster.client import Cluster
from cluster.control_plane import ControlPlane

JOBS = 40


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """These tests stop and start a control plane of their own."""
    return control_plane


def create_many(jobs: Jobs) -> list[str]:
    names = [f"job-{number}" for number in range(JOBS)]
    documents: list[Any] = [document(name, suspend=True) for name in names]  # suspended: pods are not the point here
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    jobs.kubectl("create", "-f", "-", stdin=manifest)
    return names


def end(jobs: Jobs, name: str) -> None:
    """Has KubeRay's status say that the job has succeeded or, for every third, failed."""
    failed = int(name.rpartition("-")[2]) % 3 == 0
    status = {
        "jobStatus": "FAILED" if failed else "SUCCEEDED",
        "jobDeploymentStatus": "Failed" if failed else "Complete",
    }
    jobs.report("rayjob", name, status)


def assert_settled(jobs: Jobs, names: list[str]) -> None:
    """One RayJob of each TrainJob, and the right verdict."""

    def verdicts() -> dict[str, str]:
        found = jobs.cluster.find("trainjobs", jobs.namespace)
        return {item["metadata"]["name"]: item.get("status", {}).get("phase", "") for item in found}

    expected = {name: "Failed" if number % 3 == 0 else "Succeeded" for number, name in enumerate(names)}
    eventually(lambda: verdicts() == expected, seconds=90, because=lambda: str(verdicts()))
    ray_jobs = jobs.cluster.find("rayjobs", jobs.namespace)
    owners = [ray_job["metadata"]["ownerReferences"][0]["name"] for ray_job in ray_jobs]
    assert sorted(owners) == sorted(names)


@pytest.mark.parametrize("seed", range(3))
def test_the_operator_is_killed_at_random_moments(jobs: Jobs, tmp_path: Path, seed: int):
    chance = random.Random(seed)
    names = create_many(jobs)
    left = list(names)
    while left:
        process = OperatorProcess(jobs.cluster, tmp_path, [jobs.namespace])
        until = time.monotonic() + chance.uniform(1.0, 4.0)
        while left and time.monotonic() < until:
            if jobs.get("rayjob", left[0]) is None:
                time.sleep(0.05)
            else:
                end(jobs, left.pop(0))
        process.kill()
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        assert_settled(jobs, names)


@pytest.mark.usefixtures("process")
def test_the_api_server_is_restarted(control_plane: ControlPlane, jobs: Jobs):
    names = create_many(jobs)
    control_plane.kill("kube-apiserver")
    time.sleep(2)
    control_plane.start("kube-apiserver")
    for name in names:
        eventually(lambda name=name: jobs.get("rayjob", name), seconds=90)
        end(jobs, name)
    assert_settled(jobs, names)


@pytest.mark.usefixtures("process")
def test_kuberay_is_down_for_a_while(control_plane: ControlPlane, jobs: Jobs):
    control_plane.stop("kuberay-operator")
    jobs.create()
    jobs.until(phase="Pending", reason="Created")
    control_plane.start("kuberay-operator")
    jobs.until(phase="Pending", reason="PodsStarting")


@pytest.mark.usefixtures("process")
def test_a_writer_competes_for_the_rayjobs(jobs: Jobs):
    names = create_many(jobs)[:5]
    for turn in range(5):
        for name in names:
            eventually(lambda name=name: jobs.get("rayjob", name))
            jobs.patch(
                "rayjob", name, {"spec": {"backoffLimit": turn + 1}, "metadata": {"labels": {"turn": str(turn)}}}
            )

    def is_back() -> bool:
        ray_jobs = [jobs.ray_job(name) for name in names]
        assert {ray_job["metadata"]["labels"]["turn"] for ray_job in ray_jobs} == {"4"}
        return {ray_job["spec"]["backoffLimit"] for ray_job in ray_jobs} == {0}

    eventually(is_back)


def test_two_operators_at_once(jobs: Jobs, tmp_path: Path):
    """As when a replica that has lost the Lease has not yet noticed."""
    with operator(jobs.cluster, tmp_path, [jobs.namespace]), operator(jobs.cluster, tmp_path, [jobs.namespace]):
        names = create_many(jobs)
        for name in names:
            eventually(lambda name=name: jobs.get("rayjob", name))
            end(jobs, name)
        assert_settled(jobs, names)


@pytest.mark.parametrize("gracefully", [True, False])
def test_another_replica_takes_over(jobs: Jobs, tmp_path: Path, gracefully: bool):
    replicas = ["--lease-namespace", jobs.namespace]
    with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas) as first:
        eventually(lambda: "trainjob_leader 1.0" in first.get("/metrics"))
        with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas) as second:
            assert "trainjob_leader 0.0" in second.get("/metrics")
            first.stop() if gracefully else first.kill()
            jobs.create()
            eventually(lambda: jobs.get("rayjob"), seconds=40)
            assert "trainjob_leader 1.0" in second.get("/metrics")
