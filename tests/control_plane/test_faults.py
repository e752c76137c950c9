"""Whatever dies meanwhile: in the end each TrainJob has one RayJob and its verdict, and keeps it.

`make soak` runs the same with more jobs and more random seeds.
"""

import base64
import json
import random
import signal
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from many_jobs import ManyJobs
from operator_process import OperatorProcess, account, leads, operator

from cluster.client import Cluster
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from nightly import at_night
from soak import SOAK
from tcp_proxy import proxy_to

JOBS, SEEDS = (200, 20) if SOAK else (12, 1)
HOUR = 3600


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """These tests stop and start a control plane of their own."""
    return control_plane


@pytest.fixture
def process(jobs: Jobs, tmp_path: Path) -> Generator[OperatorProcess]:
    """An operator that leads by a Lease, and becomes a standby after losing it."""
    with replica(jobs, tmp_path) as process, process.kept_running():
        yield process


@contextmanager
def replica(jobs: Jobs, folder: Path, environment: Mapping[str, str] | None = None) -> Generator[OperatorProcess]:
    """An operator that leads. Of the Lease of an earlier one, which has ended, is not waited that it runs out."""
    jobs.kubectl("delete", "lease", "--ignore-not-found", "trainjob-operator")
    lease = ["--lease-namespace", jobs.namespace]
    with operator(jobs.cluster, folder, [jobs.namespace], *lease, environment=environment) as process:
        eventually(lambda: leads(process), because=process.log.read_text)
        yield process


@pytest.fixture
def many(jobs: Jobs) -> ManyJobs:
    return ManyJobs(jobs, JOBS)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_operator_is_killed_at_random_moments(jobs: Jobs, many: ManyJobs, tmp_path: Path, seed: int):
    chance = random.Random(seed)
    many.create()
    left = chance.sample(many.names, JOBS)
    while left:
        with replica(jobs, tmp_path):
            until = time.monotonic() + chance.uniform(0.0, max(2.0, JOBS / 20))
            while left and time.monotonic() < until:
                if not many.has_ray_job(left[0]):
                    time.sleep(0.02)
                elif chance.random() < 0.1:
                    many.delete_ray_job(left[0])
                else:
                    many.end(left.pop(0))
    with replica(jobs, tmp_path):
        many.assert_settled()


@pytest.mark.usefixtures("process")
def test_the_api_server_is_restarted(control_plane: ControlPlane, many: ManyJobs):
    many.create()
    control_plane.kill("kube-apiserver")
    time.sleep(2)
    control_plane.start("kube-apiserver")
    many.end_all()
    many.assert_settled()


@pytest.mark.parametrize("how", ["fall_silent", at_night("break_off")])
def test_the_leader_is_cut_off(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path, how: str):
    """Another replica goes on, and when the network is back, both are there."""
    many, lease = ManyJobs(jobs, JOBS), ["--lease-namespace", jobs.namespace]
    with (
        proxy_to(control_plane, tmp_path) as (proxy, environment),
        replica(jobs, tmp_path, environment) as first,
        first.kept_running(),
        operator(jobs.cluster, tmp_path, [jobs.namespace], *lease) as second,
    ):
        many.create()
        getattr(proxy, how)()
        eventually(lambda: leads(second), seconds=60)
        for name in many.names[: JOBS // 2]:
            eventually(lambda name=name: many.has_ray_job(name), seconds=90)
            many.end(name)
        proxy.recover()
        many.end_all()
        many.assert_settled()


def test_a_watch_expires(control_plane: ControlPlane, many: ManyJobs, process: OperatorProcess):
    """A new list finds changes that were compacted away while nobody watched."""
    many.create()
    many.await_ray_jobs()
    version = many.jobs.cluster.find("trainjobs", many.jobs.namespace)[0]["metadata"]["resourceVersion"]
    control_plane.kill("kube-apiserver")
    process.process.send_signal(signal.SIGSTOP)
    control_plane.start("kube-apiserver")
    deleted, half = many.names.pop(), many.names[: JOBS // 2]
    many.jobs.kubectl("delete", "trainjob", deleted)
    many.delete_ray_job(many.names[-1])
    for name in half:
        many.end(name)
    many.names.append("job-1000")
    many.jobs.create("job-1000", suspend=True)
    compact(control_plane)
    assert "too old resource version" in watch_from(many.jobs, version)
    process.process.send_signal(signal.SIGCONT)
    many.await_ray_jobs()
    for name in many.names[JOBS // 2 :]:
        many.end(name)
    many.assert_settled()


def compact(control_plane: ControlPlane) -> None:
    """Makes etcd drop all revisions but the current one."""
    key = base64.b64encode(b"none").decode()
    revision = etcd(control_plane, "range", {"key": key})["header"]["revision"]
    etcd(control_plane, "compaction", {"revision": revision, "physical": True})


def etcd(control_plane: ControlPlane, call: str, body: dict[str, Any]) -> dict[str, Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{control_plane.etcd_url}/v3/kv/{call}", json.dumps(body).encode(), timeout=10) as response:
        return json.load(response)


def watch_from(jobs: Jobs, version: str) -> str:
    """The response to a watch that starts at an old version."""
    path = f"/apis/trainjob.dev/v1alpha1/namespaces/{jobs.namespace}/trainjobs"
    return jobs.kubectl("get", "--raw", f"{path}?watch=true&timeoutSeconds=1&resourceVersion={version}")


@pytest.fixture
def slowed(jobs: Jobs, tmp_path: Path) -> Generator[Path]:
    """A kubeconfig of a service account of whose requests the API server takes only a few at once."""
    name, cluster = jobs.namespace, jobs.cluster
    limited = {"nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": "operator", "namespace": name}}
    flow, group = "flowcontrol.apiserver.k8s.io/v1", "rbac.authorization.k8s.io"
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": name}],
        },
        {
            "apiVersion": flow,
            "kind": "PriorityLevelConfiguration",
            "metadata": {"name": name},
            "spec": {"type": "Limited", "limited": {**limited, "limitResponse": {"type": "Reject"}}},
        },
        {
            "apiVersion": flow,
            "kind": "FlowSchema",
            "metadata": {"name": name},
            "spec": {
                "matchingPrecedence": 100,
                "priorityLevelConfiguration": {"name": name},
                "rules": [{"subjects": [subject], "resourceRules": [rule]}],
            },
        },
    ]
    cluster.apply(*objects)
    yield account(jobs, tmp_path)
    for kind in ("flowschema", "prioritylevelconfiguration", "clusterrolebinding"):
        cluster.kubectl("delete", kind, name)


def test_the_api_server_refuses_when_it_has_too_much_to_do(
    control_plane: ControlPlane, jobs: Jobs, slowed: Path, tmp_path: Path
):
    many = ManyJobs(jobs, JOBS // 2)
    many.create()  # beforehand: the operator wants to do all at once
    with replica(jobs, tmp_path, {"KUBECONFIG": str(slowed)}):
        many.end_all()
        many.assert_settled()
    lines = control_plane.kubectl("get", "--raw", "/metrics").splitlines()
    told = f'apiserver_flowcontrol_rejected_requests_total{{flow_schema="{jobs.namespace}"'
    assert any(line.startswith(told) for line in lines)


@pytest.mark.usefixtures("process")
def test_kuberay_is_down_for_a_while(control_plane: ControlPlane, jobs: Jobs):
    control_plane.stop("kuberay-operator")
    jobs.create()
    jobs.until(phase="Pending", reason="Created")
    control_plane.start("kuberay-operator")
    jobs.until(phase="Pending", reason="PodsStarting")


@pytest.mark.usefixtures("process")
def test_a_writer_competes_for_the_rayjobs(jobs: Jobs, many: ManyJobs):
    many.create()
    many.await_ray_jobs()
    names = many.names[:5]
    for turn in range(5):
        for name in names:
            change = {"spec": {"backoffLimit": turn + 1}, "metadata": {"labels": {"turn": str(turn)}}}
            jobs.patch("rayjobs", name, change)

    def is_back() -> bool:
        ray_jobs = [jobs.ray_job(name) for name in names]
        assert {ray_job["metadata"]["labels"]["turn"] for ray_job in ray_jobs} == {"4"}
        return {ray_job["spec"]["backoffLimit"] for ray_job in ray_jobs} == {0}

    eventually(is_back)


def test_two_operators_at_once(jobs: Jobs, many: ManyJobs, tmp_path: Path):
    """Simulates a replica that has lost the Lease without noticing."""
    with operator(jobs.cluster, tmp_path, [jobs.namespace]), operator(jobs.cluster, tmp_path, [jobs.namespace]):
        many.create()
        many.end_all()
        many.assert_settled()


def test_clocks_that_differ_by_hours(jobs: Jobs, tmp_path: Path):
    """The clock of one replica is an hour slow, and that of the next one an hour fast: no deadline has passed."""
    many = ManyJobs(jobs, 5)
    with replica(jobs, tmp_path, clock(-HOUR)):
        many.create(suspend=False, deadlines={"total": "30m"}, ttlAfterFinished="30m")
        for name in many.names:
            jobs.until(name, phase="Pending", reason="PodsStarting")
    with replica(jobs, tmp_path, clock(HOUR)):
        many.names.append("job-1000")
        jobs.create("job-1000", suspend=True)
        jobs.until("job-1000", phase="Suspended")
        many.end_all()
        many.assert_settled()


def clock(shift: int) -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parent / "shifted_clock"), "CLOCK_SHIFT_SECONDS": str(shift)}
