"""A job of many pods costs the API server and the operator no more requests than one of few."""

import asyncio
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import new_client_from_config

from cluster.client import Cluster
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, document
from tcp_proxy import proxy_to
from trainjob.api import TrainJob, resources
from trainjob.api.cluster import KubernetesObject
from trainjob_operator.api import Api
from trainjob_operator.diagnosis import diagnose
from trainjob_operator.observe import PAGE_OF_PODS, observe
from trainjob_operator.verdict import Observed

PODS = 60
UID = "0f0e0d0c-0000-0000-0000-000000000000"


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """The network to it is the tests' own."""
    return control_plane


class Counting(Api):
    """Keeps what it asks for."""

    def __init__(self, client: ApiClient) -> None:
        super().__init__(client)
        self.asked: list[str] = []

    async def _send(self, method: str, path: str, *arguments: Any, **named: Any) -> KubernetesObject:
        self.asked.append(path.rpartition("/")[2])
        return await super()._send(method, path, *arguments, **named)


def waiting_pod(namespace: str, name: str) -> dict[str, Any]:
    """A pod that was assigned to a node that does not start it."""
    container = {"name": "ray-worker", "image": "i"}
    metadata = {"name": name, "namespace": namespace, "labels": {"trainjob.dev/uid": UID, "ray.io/cluster": "a"}}
    spec = {"nodeName": "a-node", "containers": [container], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def event(pod: dict[str, Any], reason: str) -> dict[str, Any]:
    metadata = pod["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{reason.lower()}", "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": name, "namespace": namespace, "uid": metadata["uid"]},
        "reason": reason,
        "message": "configmap not found",
        "type": "Warning",
    }


def test_events_are_listed_once_however_many_pods_wait(jobs: Jobs):
    jobs.cluster.apply(*(waiting_pod(jobs.namespace, f"pod-{number}") for number in range(PODS)))
    pods = jobs.cluster.find("pods", jobs.namespace)
    jobs.cluster.apply(*(event(pod, reason) for pod in pods for reason in ("FailedMount", "BackOff")))
    metadata = {"namespace": jobs.namespace, "uid": UID}
    job = TrainJob.model_validate(document("job", metadata), by_alias=True, by_name=False)
    ray_job = {"metadata": {"name": "job", "uid": UID}, "spec": {}, "status": {"rayClusterName": "a"}}

    async def look() -> tuple[Observed, list[str]]:
        async with await new_client_from_config(str(jobs.cluster.kubeconfig)) as client:
            api = Counting(client)
            return await observe(api, job, ray_job), api.asked

    observed, asked = asyncio.run(look())
    assert asked == ["pods"] * ceil(PODS / PAGE_OF_PODS) + ["events"]
    assert {str(pod["spec"]) for pod in observed.pods} == {str({"nodeName": "a-node"})}  # or they would fill the memory
    assert {each["reason"] for each in observed.events} == {"FailedMount"}
    assert [(item.reason, item.pods) for item in diagnose(observed.pods, None, observed.events)] == [
        ("FailedMount", PODS)
    ]


def test_liveness_counts_single_requests(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    with proxy_to(control_plane, tmp_path) as (proxy, environment):

        async def ask() -> None:
            async with await new_client_from_config(environment["KUBECONFIG"]) as client:
                api = Api(client)
                for _ in range(3):
                    await api.get(resources.PODS, jobs.namespace, "none")
                assert api.longest_wait == 0
                proxy.fall_silent()
                asked = asyncio.create_task(api.get(resources.PODS, jobs.namespace, "none"))
                await asyncio.sleep(1)
                assert api.longest_wait >= 0.9
                proxy.recover()
                await asked
                assert api.longest_wait == 0

        asyncio.run(ask())
