"""The operator reports a missing progress policy and does nothing. Most other tests disable that check, as their
cluster has no policy."""

import asyncio
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from http_proxy import TLS_CLOSES_SECONDS
from kubernetes.aio.config import kube_config
from operator_process import OperatorProcess, answer_at

from cluster.component import free_ports
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from trainjob.crd.definition import UNSEEN
from trainjob_operator import access
from trainjob_operator.access import AccessCheck
from trainjob_operator.run import Operator
from trainjob_operator.settings import Settings

NAME = "reporter"
OPTION = f"--progress-policy={NAME}"
RULE = {"apiGroups": ["none.example"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["none"]}
POLICY: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": NAME},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "false"}],
    },
}
BINDING: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": NAME},
    "spec": {"policyName": NAME, "validationActions": ["Deny"]},
}


def changed(found: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return found | {"spec": found["spec"] | spec}


@pytest.fixture(autouse=True)
def no_policy(cluster: ControlPlane) -> Generator[None]:
    """Neither before nor after the test."""
    yield
    for found in (POLICY, BINDING):
        cluster.kubectl("delete", found["kind"], NAME, "--ignore-not-found")


def test_the_operator_waits_for_the_policy(cluster: ControlPlane, namespace: str, tmp_path: Path):
    jobs = Jobs(cluster, namespace)
    jobs.create()
    process = OperatorProcess(cluster, tmp_path, [namespace], OPTION)
    try:
        why = "is not in place: missing policy and binding"
        eventually(lambda: why in process.log.read_text(), because=process.log.read_text)
        with pytest.raises(OSError, match="503"):
            process.get("/readyz")
        assert jobs.status() == UNSEEN
        assert "every service account may write any TrainJob's status" in process.log.read_text()
        cluster.apply(POLICY, BINDING)
        process.wait_ready()
        jobs.until(phase="Pending")
    finally:
        process.kill()


def test_a_policy_that_goes_later_is_missed_and_work_goes_on(
    cluster: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(access, "POLICY_SECONDS", 0.2)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(cluster.kubeconfig))  # what was KUBECONFIG
    (port,) = free_ports(1)
    jobs, settings = Jobs(cluster, namespace), Settings(image="i", namespaces=[namespace])
    cluster.apply(POLICY, BINDING)

    answer = partial(answer_at, port)

    def play() -> None:
        eventually(lambda: answer("/readyz") == "")
        cluster.kubectl("delete", BINDING["kind"], NAME)
        eventually(lambda: answer("/readyz").startswith("503 the policy reporter, without which"))
        assert "trainjob_access_missing 1.0" in answer("/metrics")
        assert "missing binding" in answer("/readyz")
        jobs.create()
        jobs.ray_job()
        cluster.apply(BINDING)
        eventually(lambda: answer("/readyz") == "")
        assert "trainjob_access_missing 0.0" in answer("/metrics")
        for found, change in ((BINDING, {"validationActions": ["Audit"]}), (POLICY, {"failurePolicy": "Ignore"})):
            cluster.apply(changed(found, **change))
            eventually(lambda: "its binding was changed and no longer denies anything" in answer("/readyz"))
            cluster.apply(found)
            eventually(lambda: answer("/readyz") == "")
        cluster.kubectl("delete", POLICY["kind"], NAME)
        eventually(lambda: "missing policy" in answer("/readyz"))

    async def live() -> None:
        operator = Operator(settings, AccessCheck(settings.namespaces, NAME))
        running = asyncio.create_task(operator.run(port, None, asyncio.Event().wait))
        try:
            await asyncio.to_thread(play)
        finally:
            operator.stop.set()
            await running
            await asyncio.sleep(TLS_CLOSES_SECONDS)

    asyncio.run(live())
