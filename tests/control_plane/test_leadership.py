"""Several replicas and one Lease: one of them works, whatever the network does."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError
from http_proxy import http_proxy_to
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from many_jobs import ManyJobs
from operator_process import OperatorProcess, leads, operator

from cluster.client import Cluster
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from tcp_proxy import proxy_to
from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import LEASES, TRAIN_JOBS, Resource
from trainjob.api.trainjob_status import read_status
from trainjob_operator.api import Api, ApiError, writes_only_while
from trainjob_operator.events import Recorder
from trainjob_operator.lease import NAME, Lease
from trainjob_operator.reconcile import Reconciler
from trainjob_operator.settings import Settings
from trainjob_operator.train_job import status_patch


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """The network between it and the operator is the tests' own."""
    return control_plane


def replicas(jobs: Jobs) -> list[str]:
    return ["--lease-namespace", jobs.namespace]


@pytest.mark.parametrize("gracefully", [True, False])
def test_another_replica_takes_over(jobs: Jobs, tmp_path: Path, gracefully: bool):
    with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs)) as first:
        eventually(lambda: leads(first))
        with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs)) as second:
            assert not leads(second)
            first.stop() if gracefully else first.kill()
            jobs.create()
            eventually(lambda: jobs.get("rayjobs"), seconds=40)
            assert leads(second)


def test_an_error_or_two_cost_no_leader_its_place(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    with (
        proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs), environment=environment) as process,
    ):
        eventually(lambda: leads(process))
        proxy.break_off()
        eventually(lambda: says(process, "the Lease could not be renewed"))
        proxy.recover()
        jobs.create()
        jobs.ray_job()
        assert leads(process)
        assert process.process.poll() is None


@pytest.mark.parametrize("how", ["fall_silent", "break_off"])
def test_who_cannot_renew_the_lease_leads_no_more_when_another_does(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path, how: str
):
    with (
        proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs), environment=environment) as first,
    ):
        eventually(lambda: leads(first))
        with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs)) as second:
            getattr(proxy, how)()
            eventually(lambda: leads(second), seconds=60)
            assert not leads(first)
            assert first.process.wait(timeout=30) == 0
            assert says(first, "lost the Lease; exiting")


def test_a_leader_that_stood_still_writes_nothing_once_another_leads(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path
):
    many = ManyJobs(jobs, 40)
    with (
        http_proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs), environment=environment) as first,
    ):
        eventually(lambda: leads(first))
        with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs)) as second:
            proxy.delay = 1  # so that much is still to be written, and every reading under way
            many.create()
            eventually(lambda: many.has_ray_job(many.names[0]))
            first.process.send_signal(signal.SIGSTOP)
            eventually(lambda: leads(second), seconds=60)
            written = len(proxy.changes)
            assert written < 2 * len(many.names)
            many.await_ray_jobs()
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait(timeout=30) == 0
            assert proxy.changes[written:] == []


def test_a_leader_keeps_its_place_where_every_request_takes_seconds(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path
):
    async def lead(client: ApiClient) -> None:
        lease = Lease(Api(client), jobs.namespace)
        await lease.acquire()
        with suppress(TimeoutError):
            async with asyncio.timeout(12):
                await lease.keep()
        assert lease.is_held

    with http_proxy_to(control_plane, tmp_path) as (proxy, environment):
        proxy.delay = 2.2
        with_client(environment["KUBECONFIG"], lead)


def test_a_replica_stands_by_until_there_is_an_api_server(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    with proxy_to(control_plane, tmp_path) as (proxy, environment):
        proxy.break_off()
        with operator(jobs.cluster, tmp_path, [jobs.namespace], *replicas(jobs), environment=environment) as process:
            eventually(lambda: says(process, "the Lease could not be renewed"))
            proxy.recover()
            jobs.create()
            jobs.ray_job()


def says(process: OperatorProcess, words: str) -> bool:
    return words in process.log.read_text()


def with_client(kubeconfig: str | Path, do: Callable[[ApiClient], Awaitable[None]]) -> None:
    async def connect() -> None:
        async with await config.new_client_from_config(str(kubeconfig)) as client:
            await do(client)

    asyncio.run(connect())


def test_only_who_has_the_lease_gives_it_up(jobs: Jobs):
    async def hand_over(client: ApiClient) -> None:
        api = Api(client)
        first, second = Lease(api, jobs.namespace), Lease(api, jobs.namespace)
        await first.acquire()
        lease = await api.get(LEASES, jobs.namespace, NAME) or {}
        del lease["spec"]["holderIdentity"]
        await api.replace(LEASES, jobs.namespace, NAME, lease)
        await second.acquire()
        await first.release()
        lease = await api.get(LEASES, jobs.namespace, NAME) or {}
        assert "holderIdentity" in lease["spec"]
        await second.release()
        lease = await api.get(LEASES, jobs.namespace, NAME) or {}
        assert "holderIdentity" not in lease["spec"]

    with_client(jobs.cluster.kubeconfig, hand_over)


def test_who_leads_no_more_writes_nothing(jobs: Jobs):
    kind, body = (
        Resource("/api/v1", "configmaps"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}},
    )

    async def write(client: ApiClient) -> None:
        lease = Lease(Api(client), jobs.namespace)
        configuration = Configuration(client_session_kwargs={"middlewares": [writes_only_while(lambda: lease.is_held)]})
        await config.load_kube_config(str(jobs.cluster.kubeconfig), client_configuration=configuration)
        await lease.acquire()
        async with ApiClient(configuration) as leaders:
            api = Api(leaders)
            made = await api.create(kind, jobs.namespace, body)
            await lease.release()
            with pytest.raises(ClientError, match="is no longer the leader"):
                await api.replace(kind, jobs.namespace, "own", made)
            assert await api.get(kind, jobs.namespace, "own") == made

    with_client(jobs.cluster.kubeconfig, write)


def reconciler(api: Api) -> Reconciler:
    return Reconciler(api, Settings(image="i"), Recorder(api))


class HeldUp(Api):
    """Delays a leader's status write until the next leader has seen the job's end."""

    def __init__(self, client: ApiClient, jobs: Jobs) -> None:
        super().__init__(client)
        self._next, self._jobs = Api(client), jobs

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Sequence[Mapping[str, Any]]
    ) -> KubernetesObject:
        self._jobs.report("rayjobs", "job", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
        await reconciler(self._next).reconcile((namespace, "job"))
        return await super().patch(resource, namespace, name, patch)


def test_what_an_earlier_leader_has_on_its_way_changes_no_verdict(jobs: Jobs):
    async def reconcile(client: ApiClient) -> None:
        jobs.create(suspend=True)
        await reconciler(Api(client)).reconcile((jobs.namespace, "job"))
        jobs.patch("trainjobs", "job", {"spec": {"suspend": False}})
        with pytest.raises(ApiError, match="rejected our request"):
            await reconciler(HeldUp(client, jobs)).reconcile((jobs.namespace, "job"))
        assert jobs.status()["phase"] == "Succeeded"

    with_client(jobs.cluster.kubeconfig, reconcile)


def test_a_head_that_an_earlier_leader_has_seen_does_not_take_the_place_of_the_present_one(jobs: Jobs):
    async def write_late(client: ApiClient) -> None:
        api = Api(client)
        jobs.create(suspend=True)
        await reconciler(api).reconcile((jobs.namespace, "job"))
        before = jobs.get("trainjobs") or {}
        status, _ = read_status(before)
        jobs.report("trainjobs", "job", before["status"] | {"headPodUID": "the-present-head"})
        late = status_patch(before, status.model_copy(update={"head_pod_uid": "an-earlier-head"}))
        with pytest.raises(ApiError, match="rejected our request"):
            await api.patch(TRAIN_JOBS, jobs.namespace, "job/status", late)
        assert jobs.status()["headPodUID"] == "the-present-head"

    with_client(jobs.cluster.kubeconfig, write_late)
