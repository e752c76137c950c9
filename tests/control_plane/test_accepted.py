"""A TrainJob that the API server admits is rendered by the operator and accepted by KubeRay."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from operator_process import operator

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually
from control_plane.strategies import trainjobs
from soak import SOAK

EXAMPLES = 400 if SOAK else 20


def documents() -> list[dict[str, Any]]:
    """Valid TrainJobs, each with a name of its own and without pods to come."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(trainjobs())
    def collect(document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        metadata["name"] = f"{metadata['name'][:200].rstrip('.-')}-{len(found)}"
        document["spec"] |= {"suspend": True, "cancel": False}
        document["spec"].pop("managedBy", None)
        if "nodePool" in document["spec"].get("workers", {}):
            document["spec"]["workers"]["nodePool"] = "a100"
        found.append(document)

    collect()
    return found


def refusals(cluster: Cluster, namespace: str) -> list[str]:
    jobs = cluster.find("trainjobs", namespace)
    return [f"{job['metadata']['name']}: {job['status']}" for job in jobs if job["status"]["phase"] != "Suspended"]


def test_whatever_is_admitted_is_rendered_and_accepted(cluster: Cluster, namespace: str, tmp_path: Path):
    jobs, found = Jobs(cluster, namespace), documents()
    assert len(found) >= EXAMPLES
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    with operator(cluster, tmp_path, [namespace]):
        jobs.kubectl("create", "-f", "-", stdin=manifest)

        def suspended() -> bool:
            ray_jobs = cluster.find("rayjobs", namespace)
            states = [ray_job.get("status", {}).get("jobDeploymentStatus") for ray_job in ray_jobs]
            assert "ValidationFailed" not in states, [ray_job.get("status") for ray_job in ray_jobs]
            return len(states) == len(found) and set(states) == {"Suspended"}

        eventually(suspended, seconds=900 if SOAK else 90, because=lambda: str(refusals(cluster, namespace)))
