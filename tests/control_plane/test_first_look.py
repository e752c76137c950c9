"""A new TrainJob is taken as the watch has it, and its RayJob is made without looking for one first."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from operator_process import SETTINGS, operator

from cluster.client import Cluster
from cluster.jobs import Jobs
from trainjob_operator.api import TRAIN_JOBS, Api, ApiError
from trainjob_operator.events import Recorder
from trainjob_operator.reconcile import Reconciler
from trainjob_operator.settings import Settings


def test_a_status_is_not_written_by_what_was_seen_before_there_was_one(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    jobs.create()
    early = jobs.get("trainjobs")
    assert early is not None
    with operator(cluster, tmp_path, [jobs.namespace]):
        jobs.ray_job()
        jobs.report("rayjob", "job", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"})
        jobs.until(phase="Succeeded")
    late = jobs.get("trainjobs")
    asyncio.run(_look(cluster, early))
    assert jobs.get("trainjobs") == late


async def _look(cluster: Cluster, seen: dict[str, Any]) -> None:
    """Reconciles a TrainJob that was last seen like this, and once more."""
    configuration = Configuration()
    await config.load_kube_config(str(cluster.kubeconfig), client_configuration=configuration)
    settings = Settings.model_validate(SETTINGS, by_alias=True, by_name=False)
    key = seen["metadata"]["namespace"], seen["metadata"]["name"]
    async with ApiClient(configuration) as client:
        api = Api(client)
        await api.get(TRAIN_JOBS, *key)  # whose answer tells the time
        reconciler = Reconciler(api, settings, Recorder(api), {key: seen})
        with pytest.raises(ApiError) as refused:
            await reconciler.reconcile(key)
        assert refused.value.status == 422
        await reconciler.reconcile(key)


def test_no_event_is_lost_by_an_operator_that_is_stopped(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    names = [f"job-{number}" for number in range(30)]
    for name in names:
        jobs.create(name)
    with operator(cluster, tmp_path, [jobs.namespace]) as process:
        for name in names:
            jobs.until(name, phase="Pending")
        assert process.stop() == 0
    assert [reason for name in names for reason in jobs.events(name)] == ["Created"] * len(names)
