"""The manifests that people begin with."""

from pathlib import Path

import yaml
from train_jobs import LONG, TrainJobs

from cluster.jobs import eventually

EXAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "examples").glob("*.yaml"))


def test_every_example_is_admitted(jobs: TrainJobs) -> None:
    metadata = {"name": "none", "namespace": jobs.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "0"}}}
    jobs.cluster.apply(quota)  # so that none of them runs
    for example in EXAMPLES:
        jobs.kubectl("apply", "--server-side", "--filename", str(example))
        for part in yaml.safe_load_all(example.read_text()):
            if part["kind"] == "TrainJob":
                pool = part["spec"].get("workers", {}).get("nodePool")
                reason = "UnknownNodePool" if pool else "QuotaExceeded"  # its pool is not among those of this cluster
                until_reason(jobs, part["metadata"]["name"], reason)


def until_reason(jobs: TrainJobs, name: str, reason: str) -> None:
    eventually(lambda: jobs.status(name).get("reason") == reason, LONG, lambda: f"{name}: {jobs.status(name)}")
