"""Something between the TrainJob and its RayJob fails: the status says so, and an existing RayJob still decides."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import new_client_from_config
from operator_process import OperatorProcess, account, operator

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually
from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import TRAIN_JOBS, Resource
from trainjob_operator.api import Api, ApiError
from trainjob_operator.events import Recorder
from trainjob_operator.reconcile import Reconciler
from trainjob_operator.settings import Settings


def failing_webhook(namespace: str, group: str, plural: str) -> dict[str, Any]:
    """An admission webhook that nobody serves."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{plural}-{namespace}"},
        "webhooks": [
            {
                "name": "down.example.com",
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "rules": [
                    {"apiGroups": [group], "apiVersions": ["*"], "resources": [plural], "operations": ["CREATE"]}
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }


@pytest.fixture
def webhooks(jobs: Jobs) -> Generator[None]:
    """Webhooks of the namespace's RayJobs and Events that fail."""
    found = [
        failing_webhook(jobs.namespace, group, plural) for group, plural in (("ray.io", "rayjobs"), ("", "events"))
    ]
    jobs.cluster.apply(*found)
    yield
    for each in found:
        jobs.cluster.kubectl("delete", "validatingwebhookconfiguration", each["metadata"]["name"])


@pytest.mark.usefixtures("webhooks")
def test_a_webhook_that_fails_is_named_and_other_namespaces_go_on(jobs: Jobs, tmp_path: Path):
    other = Jobs(jobs.cluster, f"{jobs.namespace}-other")
    jobs.cluster.kubectl("create", "namespace", other.namespace)
    with operator(jobs.cluster, tmp_path, [jobs.namespace, other.namespace]):
        jobs.create("refused")
        assert "down.example.com" in jobs.until("refused", phase="Pending", reason="RayJobRefused")["message"]
        other.create()
        eventually(lambda: "Created" in other.events())
    other.kubectl("delete", "trainjob", "job")
    jobs.cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


@pytest.mark.operated
def test_a_status_that_cannot_be_read_freezes_nothing(jobs: Jobs):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.report("trainjob", "job", {"training": {"failure": {"exception": "AssertionError"}, "bestCheckpoint": {}}})
    jobs.report("rayjob", "job", {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"})
    assert jobs.until(phase="Failed")["message"] == "the driver failed: AssertionError"


class Overtaken(Api):
    """Right after the operator has first read the TrainJob, something else happens."""

    def __init__(self, client: ApiClient, meanwhile: Callable[[], None]) -> None:
        super().__init__(client)
        self._events = [meanwhile]

    async def get(self, resource: Resource, namespace: str | None, name: str) -> KubernetesObject | None:
        found = await super().get(resource, namespace, name)
        if resource == TRAIN_JOBS and self._events:
            self._events.pop()()
        return found


@asynccontextmanager
async def overtaken(jobs: Jobs, meanwhile: Callable[[], None]) -> AsyncGenerator[Reconciler]:
    """Reconciles the job, and then gives a reconciler that is overtaken the first time."""
    async with await new_client_from_config(str(jobs.cluster.kubeconfig)) as client:
        recorder = Recorder(Api(client))
        await Reconciler(Api(client), Settings(image="i"), recorder).reconcile((jobs.namespace, "job"))
        yield Reconciler(Overtaken(client, meanwhile), Settings(image="i"), recorder)
        await recorder.flush()


def test_a_trainjob_that_is_deleted_meanwhile_gets_no_other_rayjob(jobs: Jobs):
    jobs.create(suspend=True)

    def delete() -> None:
        jobs.delete("trainjobs", "job")
        eventually(lambda: jobs.get("rayjobs") is None)

    async def reconcile() -> None:
        async with overtaken(jobs, delete) as reconciler:
            jobs.ray_job()
            with pytest.raises(ApiError, match="not found"):
                await reconciler.reconcile((jobs.namespace, "job"))

    asyncio.run(reconcile())
    assert jobs.get("rayjobs") is None
    assert sorted(jobs.events()) == ["Created", "Suspended"]


def test_what_the_driver_says_while_the_operator_reads_counts(jobs: Jobs):
    jobs.create()

    def end() -> None:
        failure = {"rank": None, "exception": "ValueError", "message": "no", "retryable": False}
        jobs.report("trainjob", "job", {"training": {"failure": failure}})
        jobs.report("rayjob", "job", {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "Gone"})

    async def reconcile() -> None:
        async with overtaken(jobs, end) as reconciler:
            assert await reconciler.reconcile((jobs.namespace, "job")) == 0
            assert jobs.status()["phase"] == "Pending"
            assert await reconciler.reconcile((jobs.namespace, "job")) is None

    asyncio.run(reconcile())
    status = jobs.status()
    assert (status["reason"], status["message"]) == ("TrainingFailed", "the driver failed: ValueError: no")
    assert sorted(jobs.events()) == ["Created", "Failed"]


@pytest.mark.operated
def test_a_changed_config_is_said_and_the_old_one_kept(jobs: Jobs):
    function = {"name": "train:loop", "config": {"lr": 1}}
    jobs.create(model={"function": function}, dataset=None)
    jobs.until(phase="Pending", reason="PodsStarting")
    before = jobs.ray_job()["spec"]["rayClusterSpec"]
    jobs.patch("trainjob", "job", {"spec": {"model": {"function": {"config": {"lr": None, "rate": 5}}}, "retries": 2}})
    eventually(lambda: _accepted(jobs)["reason"] == "ConfigChanged", because=lambda: str(jobs.status()))
    eventually(lambda: jobs.ray_job()["spec"]["backoffLimit"] == 2)
    head = "headGroupSpec"
    changed = _config(jobs.ray_job()["spec"]["rayClusterSpec"][head])
    assert changed == _config(before[head]) == {"lr": 1}


def _accepted(jobs: Jobs) -> dict[str, Any]:
    return next(each for each in jobs.status()["conditions"] if each["type"] == "Accepted")


def _config(head: dict[str, Any]) -> Any:
    snapshot = yaml.safe_load(head["template"]["metadata"]["annotations"]["trainjob.dev/trainjob"])
    return snapshot["spec"]["model"]["function"]["config"]


@pytest.mark.operated
def test_labels_and_annotations_that_are_stripped_come_back(jobs: Jobs):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.patch("rayjob", "job", {"metadata": {"labels": {"trainjob.dev/uid": None}}})
    eventually(lambda: "trainjob.dev/uid" in jobs.ray_job()["metadata"]["labels"])
    jobs.patch("rayjob", "job", {"metadata": {"annotations": {"trainjob.dev/name": None}}})
    eventually(lambda: "trainjob.dev/name" in jobs.ray_job()["metadata"]["annotations"])


def test_the_operator_is_unready_until_it_may_watch(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    jobs.create()
    kubeconfig = account(jobs, tmp_path)
    process = OperatorProcess(cluster, tmp_path, [jobs.namespace], environment={"KUBECONFIG": str(kubeconfig)})
    try:
        eventually(lambda: "trainjobs cannot be listed" in process.log.read_text(), because=process.log.read_text)
        with pytest.raises(OSError, match="503"):
            process.get("/readyz")
        jobs.kubectl(
            "create",
            "rolebinding",
            "admin",
            "--clusterrole=cluster-admin",
            f"--serviceaccount={jobs.namespace}:operator",
        )
        process.wait_ready()
        jobs.until(phase="Pending", rayJobName="job")
    finally:
        process.kill()
