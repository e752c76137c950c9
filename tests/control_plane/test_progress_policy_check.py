"""Without the policy of who may report progress the operator does nothing, and says so."""

import asyncio
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from kubernetes.aio.config import kube_config
from operator_process import OperatorProcess, operator

from cluster.component import free_ports
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from trainjob_operator import access
from trainjob_operator.access import Access
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
    steps = [
        ("its policy and its binding is missing", POLICY),
        ("its binding is missing", changed(BINDING, validationActions=["Audit"])),
        ("it or its binding was changed so that it denies nothing", changed(POLICY, failurePolicy="Ignore")),
        ("it or its binding was changed so that it denies nothing", BINDING),
        ("it or its binding was changed so that it denies nothing", POLICY),
    ]
    try:
        for why, remedy in steps:
            seen = len(process.log.read_text())
            eventually(lambda why=why, seen=seen: why in process.log.read_text()[seen:], because=process.log.read_text)
            with pytest.raises(OSError, match="503"):
                process.get("/readyz")
            assert jobs.status() == {}
            cluster.apply(remedy)
        process.wait_ready()
        jobs.until(phase="Pending")
        assert "every service account may write any TrainJob's status" in process.log.read_text()
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

    def answer(path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
                return response.read().decode()
        except HTTPError as error:
            return f"{error.code} {error.read().decode()}"

    def play() -> None:
        eventually(lambda: answer("/readyz") == "")
        cluster.kubectl("delete", BINDING["kind"], NAME)
        eventually(lambda: answer("/readyz").startswith("503 the policy reporter, without which"))
        assert "trainjob_access_missing 1.0" in answer("/metrics")
        jobs.create()
        jobs.ray_job()
        cluster.apply(BINDING)
        eventually(lambda: answer("/readyz") == "")
        assert "trainjob_access_missing 0.0" in answer("/metrics")

    async def live() -> None:
        operator = Operator(settings, Access(settings.namespaces, NAME))
        running = asyncio.create_task(operator.run(port, None))
        try:
            await asyncio.to_thread(play)
        finally:
            operator.stop.set()
            await running

    asyncio.run(live())


def test_where_there_are_no_such_rights_it_asks_for_no_policy(cluster: ControlPlane, namespace: str, tmp_path: Path):
    with operator(cluster, tmp_path, [namespace]):
        pass
