"""TrainJobs in a queue of a real Kueue, which decides when their RayJobs run.

Its webhooks are left out: they would need certificates of their own. What matters of them, that RayJobs in a queue are
created suspended, a policy does: KubeRay may leave a RayCluster behind of a RayJob that is suspended in the moment in
which it creates it.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Command

from cluster.client import Cluster
from cluster.component import Component, free_ports
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, document, eventually
from servers.programs import sources

pytestmark = [pytest.mark.operated, pytest.mark.nightly]

API = "kueue.x-k8s.io/v1beta2"
IN_QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}


SPOT = {"key": "spot", "operator": "Exists"}
OWN = {"key": "gpu", "operator": "Exists"}
CLIENT = {"service": {"namespace": "kueue-system", "name": "none", "path": "/convert"}}
CONVERSION = {
    "spec": {
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": CLIENT}}
    }
}
"""Kueue starts only where it finds that it could convert old versions, of which there are none here."""
ADMISSION = "admissionregistration.k8s.io/v1beta1"
RULE = {"apiGroups": ["ray.io"], "apiVersions": ["v1"], "resources": ["rayjobs"], "operations": ["CREATE"]}
IS_QUEUED = "'kueue.x-k8s.io/queue-name' in object.metadata.?labels.orValue({})"
SUSPEND = "Object{spec: Object.spec{suspend: true}}"
SUSPENDED = {
    "matchConstraints": {"resourceRules": [RULE]},
    "matchConditions": [{"name": "queued", "expression": IS_QUEUED}],
    "reinvocationPolicy": "Never",
    "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": SUSPEND}}],
}


@pytest.fixture(scope="module")
def kueue(control_plane: ControlPlane) -> Generator[ControlPlane]:
    """A control plane with Kueue."""
    control_plane.kubectl("apply", "--server-side", "-f", sources("kueue") / "config" / "components" / "crd" / "bases")
    control_plane.await_definitions()
    for plural in ("localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters"):
        control_plane.kubectl("patch", "crd", f"{plural}.kueue.x-k8s.io", "--type=merge", "-p", json.dumps(CONVERSION))
    control_plane.kubectl("create", "namespace", "kueue-system")
    control_plane.kubectl("create", "secret", "generic", "certificates", "--namespace=kueue-system")
    component = _manager(control_plane)
    try:
        component.start()
        with _created_suspended(control_plane):
            yield control_plane
    finally:
        component.kill()


@contextmanager
def _created_suspended(cluster: Cluster) -> Generator[None]:
    """RayJobs in a queue are created suspended."""
    for kind, spec in (("Policy", SUSPENDED), ("PolicyBinding", {"policyName": "suspended"})):
        policy = {"kind": f"MutatingAdmission{kind}", "metadata": {"name": "suspended"}, "spec": spec}
        cluster.apply({"apiVersion": ADMISSION, **policy})
    ray_job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "job", **IN_QUEUE}, "spec": {}}
    create = ("create", "--dry-run=server", "--output=jsonpath={.spec.suspend}", "--filename=-")
    eventually(lambda: cluster.kubectl(*create, stdin=json.dumps(ray_job)) == "true")
    yield
    cluster.kubectl("delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "suspended")


def _manager(control_plane: ControlPlane) -> Component:
    health, webhook = free_ports(2)
    folder = control_plane.folder / "kueue"
    folder.mkdir()
    for end in ("crt", "key"):  # the API server's do: nobody asks the webhooks anything
        (folder / f"tls.{end}").write_bytes((control_plane.folder / f"apiserver.{end}").read_bytes())
    configuration = folder / "configuration.yaml"
    settings: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(folder)},
        "waitForPodsReady": {"timeout": "30s", "recoveryTimeout": "30s"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookSecretName": "certificates"},
        "integrations": {"frameworks": ["ray.io/rayjob"]},
        "featureGates": {"VisibilityOnDemand": False},
    }
    configuration.write_text(json.dumps(settings))
    flags = [f"--kubeconfig={control_plane.kubeconfig}", f"--config={configuration}"]
    return control_plane.component("kueue", f"http://127.0.0.1:{health}/readyz", *flags)


@pytest.fixture(scope="module")
def cluster(kueue: ControlPlane) -> Cluster:
    return kueue


@pytest.fixture
def quota(jobs: Jobs) -> Generator["Quota"]:
    """The quota of the namespace's queue, at first 0."""
    name = jobs.namespace
    local = {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": "queue", "namespace": name}}
    jobs.cluster.apply(
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"tolerations": [SPOT]}},
        {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": {"namespaceSelector": {}}},
        {**local, "spec": {"clusterQueue": name}},
    )
    quota = Quota(jobs)
    quota.set(0)
    yield quota
    jobs.cluster.kubectl("delete", "clusterqueue", jobs.namespace, "--wait=false")


class Quota:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def set(self, cpus: int) -> None:
        """Sets the total number of CPUs for the queue's jobs."""
        name = self._jobs.namespace
        resources = [{"name": "cpu", "nominalQuota": cpus}, {"name": "memory", "nominalQuota": "1Ti"}]
        group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": resources}]}
        change = json.dumps({"spec": {"resourceGroups": [group]}})
        self._jobs.kubectl("patch", "clusterqueue", name, "--type=merge", "-p", change)


def test_a_job_waits_for_quota_and_says_so(jobs: Jobs, quota: Quota):
    jobs.create(metadata=IN_QUEUE)
    jobs.until(phase="Suspended", reason="Queued")
    eventually(lambda: "insufficient" in jobs.status()["message"], because=lambda: str(jobs.status()))
    assert jobs.cluster.find("pods", jobs.namespace) == []
    quota.set(100)
    jobs.until(phase="Pending", reason="PodsStarting")
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 2)


def test_the_doctor_checks_the_queue(jobs: Jobs, trainjob: Command, quota: Quota, tmp_path: Path):
    file = tmp_path / "job.yaml"

    def found(queue: str) -> dict[str, str]:
        job = document("job", {"labels": {"kueue.x-k8s.io/queue-name": queue}}, pods={"image": "none"})
        file.write_text(json.dumps(job))
        said = trainjob("doctor", str(file), "--output", "json", "--timeout", "1s")
        return {each["check"]: each["message"] for each in json.loads(said.out)}

    assert eventually(lambda: found("queue")["queues"] == "queue is active", because=lambda: str(found("queue")))
    assert found("another")["queues"] == f"there is no LocalQueue another in {jobs.namespace}; there are: queue"
    integrations = {"integrations": {"frameworks": ["batch/job"]}}
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": json.dumps(integrations)}}
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    assert "cannot be read" in found("queue")["Kueue"]
    jobs.cluster.apply(configuration | {"metadata": metadata})
    assert found("queue")["Kueue"].startswith("its integration ray.io/rayjob is off")
    jobs.cluster.delete("configmaps", "kueue-system", "kueue-manager-config")
    jobs.kubectl("patch", "localqueue", "queue", "--type=merge", "-p", '{"spec": {"stopPolicy": "Hold"}}')
    eventually(lambda: found("queue")["queues"].startswith("queue is not active: "))


def test_time_in_the_queue_does_not_count_against_the_deadline(jobs: Jobs, quota: Quota):
    jobs.create(metadata=IN_QUEUE, deadlines={"total": "10s"})
    jobs.until(phase="Suspended", reason="Queued")
    time.sleep(11)
    jobs.patch("trainjob", "job", {"metadata": {"labels": {"look": "again"}}})
    eventually(lambda: jobs.ray_job()["metadata"]["labels"].get("look"))
    assert jobs.status()["phase"] == "Suspended"
    quota.set(100)
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.until(phase="Failed", reason="DeadlineExceeded")


def test_an_admitted_job_is_suspended_and_resumed(jobs: Jobs, quota: Quota):
    quota.set(100)
    jobs.create(metadata=IN_QUEUE, pods={"tolerations": [OWN]})
    eventually(lambda: _is_admitted(jobs.ray_job()))
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.patch("trainjob", "job", {"metadata": {"labels": {"team": "vision"}}})
    eventually(lambda: jobs.ray_job()["metadata"]["labels"].get("team"))
    assert jobs.ray_job()["spec"]["submitterPodTemplate"]["spec"]["tolerations"] == [OWN, SPOT]
    assert jobs.status()["reason"] == "PodsStarting", "Kueue evicts a job that loses the tolerations of its flavor"
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until(phase="Suspended", reason="Suspended")
    eventually(lambda: jobs.cluster.find("rayclusters", jobs.namespace) == [])
    version = jobs.ray_job()["metadata"]["generation"]
    jobs.create("other", metadata=IN_QUEUE)
    jobs.until("other", phase="Pending", reason="PodsStarting")
    assert jobs.ray_job()["metadata"]["generation"] == version, "operator and Kueue write in turns"
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    jobs.until(phase="Pending", reason="PodsStarting")


def _is_admitted(ray_job: dict[str, Any]) -> bool:
    """Whether Kueue has started it; its pods are marked then."""
    return "kueue.x-k8s.io/workload" in ray_job["spec"]["submitterPodTemplate"]["metadata"].get("annotations", {})


def test_a_job_that_is_suspended_from_the_start_is_not_queued(jobs: Jobs, quota: Quota):
    quota.set(100)
    jobs.create(metadata=IN_QUEUE, suspend=True)
    jobs.until(phase="Suspended", reason="Suspended")
    jobs.create("other", metadata=IN_QUEUE)
    jobs.until("other", phase="Pending", reason="PodsStarting")
    assert jobs.get("rayjobs") is None
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    jobs.until(phase="Pending", reason="PodsStarting")


def test_a_workload_that_an_administrator_has_deactivated_stays_so(jobs: Jobs, quota: Quota):
    jobs.create(metadata=IN_QUEUE)
    jobs.until(phase="Suspended", reason="Queued")
    (workload,) = eventually(lambda: jobs.cluster.find("workloads", jobs.namespace))
    jobs.patch("workload", workload["metadata"]["name"], {"spec": {"active": False}})
    quota.set(100)
    eventually(lambda: "deactivated" in jobs.status()["message"], because=lambda: str(jobs.status()))
    (workload,) = jobs.cluster.find("workloads", jobs.namespace)
    assert workload["spec"]["active"] is False


def test_a_queued_job_leaves_its_queue(jobs: Jobs, quota: Quota):
    jobs.create(metadata=IN_QUEUE)
    jobs.until(phase="Suspended", reason="Queued")
    jobs.patch("trainjob", "job", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}})
    jobs.until(phase="Pending", reason="PodsStarting")
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 2)


def test_a_job_whose_pods_are_late_says_that_kueue_evicts_it(jobs: Jobs, quota: Quota):
    quota.set(100)
    jobs.create(metadata=IN_QUEUE)
    jobs.until(phase="Pending", reason="PodsStarting")
    evicted = "Kueue has evicted the job once (PodsReadyTimeout)"
    eventually(lambda: evicted in str(jobs.status()), seconds=90, because=lambda: str(jobs.status()))
