"""Kubernetes Events of TrainJobs."""

import asyncio
from pathlib import Path
from typing import Any

from kubernetes.aio.config import new_client_from_config
from operator_process import operator

from cluster.client import Cluster
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs
from tcp_proxy import proxy_to
from trainjob.api.cluster import KubernetesObject
from trainjob_operator.api import Api
from trainjob_operator.events import Recorder
from trainjob_operator.reconcile import Reconciler
from trainjob_operator.settings import Settings


def test_no_event_is_lost_by_an_operator_that_is_stopped(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    names = [f"job-{number}" for number in range(30)]
    for name in names:
        jobs.create(name)
    with operator(cluster, tmp_path, [jobs.namespace]) as process:
        for name in names:
            jobs.until(name, phase="Pending")
        assert process.stop() == 0
    assert [reason for name in names for reason in jobs.events(name)] == ["Created"] * len(names)


def test_events_that_wait_are_sent_though_their_sender_was_cancelled(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path
):
    """Kopf cancels all tasks that have begun since it did, when it has to begin anew."""
    jobs.create()
    (job,) = (each["metadata"] for each in jobs.cluster.find("trainjobs", jobs.namespace))

    async def record() -> None:
        async with await new_client_from_config(environment["KUBECONFIG"]) as client:
            recorder = Recorder(Api(client))
            proxy.break_off()
            await recorder.record(job, "", "First", "", warning=False)
            own = asyncio.current_task()
            senders = [task for task in asyncio.all_tasks() if task is not own]
            for task in senders:
                task.cancel()
            await asyncio.wait(senders)
            proxy.recover()
            await recorder.record(job, "", "Second", "", warning=False)
            await recorder.flush()

    with proxy_to(control_plane, tmp_path) as (proxy, environment):
        asyncio.run(record())
    assert sorted(jobs.events()) == ["First", "Second"]


class Dies(Api):
    """The API of an operator that dies right after a write."""

    async def _send(self, method: str, *arguments: Any, **named: Any) -> KubernetesObject:
        answer = await super()._send(method, *arguments, **named)
        if method != "GET":
            raise asyncio.CancelledError
        return answer


def test_an_operator_that_dies_after_each_write_loses_and_repeats_no_event(jobs: Jobs):
    async def reconcile(name: str = "job") -> None:
        async with await new_client_from_config(str(jobs.cluster.kubeconfig)) as client:
            while True:
                try:
                    return await _reconcile(Dies(client), name)
                except asyncio.CancelledError:
                    continue

    async def _reconcile(api: Api, name: str) -> None:
        await Reconciler(api, Settings(image="i"), Recorder(api)).reconcile((jobs.namespace, name))

    jobs.create(suspend=True)
    asyncio.run(reconcile())
    jobs.delete("rayjobs")
    asyncio.run(reconcile())
    jobs.report("rayjobs", "job", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
    asyncio.run(reconcile())
    assert sorted(jobs.events()) == ["Created", "RayJobRecreated", "Succeeded", "Suspended"]

    jobs.create("refused", workers={"nodePool": "none"})
    for _ in range(2):
        asyncio.run(reconcile("refused"))
    assert jobs.events("refused") == ["UnknownNodePool"]
