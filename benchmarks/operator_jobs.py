"""TrainJobs and RayJobs for the operator's benchmarks, and the writes of other controllers to them."""

import asyncio
import random
from datetime import UTC, datetime
from typing import Any

from operator_cluster import RAY_JOBS, TRAIN_JOBS, Client, Object

from cluster.jobs import document
from control_plane.operator_process import SETTINGS
from trainjob.api import TrainJob
from trainjob_operator.render import render
from trainjob_operator.settings import Settings

PENDING = {
    "phase": "Pending",
    "reason": "Created",
    "rayJobName": "job",
    "conditions": [
        {"type": name, "status": "False", "reason": "Not" + name, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for name in ("Accepted", "Complete", "Failed", "Suspended")
    ],
}
RUNNING = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": "a-cluster"}


def has_ray_job(train_job: Object) -> bool:
    return bool(train_job.get("status", {}).get("rayJobName"))


def has_ray_cluster(ray_job: Object) -> bool:
    return bool(ray_job.get("status", {}).get("rayClusterName"))


def is_running(train_job: Object) -> bool:
    return train_job.get("status", {}).get("phase") == "Running"


def train_jobs(number: int) -> list[dict[str, Any]]:
    return [document(f"job-{each}") for each in range(number)]


def ray_jobs(number: int, namespace: str) -> list[dict[str, Any]]:
    """RayJobs that the operator would create for as many TrainJobs, without an owner."""
    settings = Settings.model_validate(SETTINGS, by_alias=True, by_name=False)
    rendered: list[dict[str, Any]] = []
    for body in train_jobs(number):
        body["metadata"] |= {"namespace": namespace, "uid": f"uid-{len(rendered)}"}
        ray_job = render(TrainJob.model_validate(body, by_alias=True, by_name=False), settings)
        del ray_job["metadata"]["ownerReferences"]
        rendered.append(ray_job)
    return rendered


async def create_same(jobs: Client, train_job: dict[str, Any], ray_job: dict[str, Any]) -> None:
    """All writes for a TrainJob until the operator is done with it, except an Event."""
    await jobs.create(TRAIN_JOBS, train_job)
    await jobs.create(RAY_JOBS, ray_job)
    await jobs.report(TRAIN_JOBS, train_job["metadata"]["name"], PENDING)


async def make_finished(jobs: Client, body: dict[str, Any]) -> None:
    """Creates a succeeded TrainJob with its remaining RayJob."""
    made = await jobs.create(TRAIN_JOBS, body)
    settings = Settings.model_validate(SETTINGS, by_alias=True, by_name=False)
    job = TrainJob.model_validate(made, by_alias=True, by_name=False)
    await jobs.create(RAY_JOBS, render(job, settings))
    name, now = job.metadata.name, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    await jobs.report(RAY_JOBS, name, {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
    status = {"phase": "Succeeded", "reason": "Succeeded", "rayJobName": name, "completionTime": now, "attempt": 1}
    await jobs.report(TRAIN_JOBS, name, status)


async def report_progress(jobs: Client, name: str) -> None:
    await asyncio.sleep(random.uniform(0, 5))
    step = 0
    while True:
        step += 1
        training = {"stage": "Training", "epoch": 1, "epochs": 3, "step": step, "steps": 9999, "percent": step / 100}
        await jobs.report(TRAIN_JOBS, name, {"training": training})
        await asyncio.sleep(5)
