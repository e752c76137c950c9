"""Without the policy of who may report progress the operator does nothing, and says so."""

from pathlib import Path
from typing import Any

import pytest
from operator_process import OperatorProcess, operator

from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually

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
        for found in (POLICY, BINDING):
            cluster.kubectl("delete", found["kind"], NAME, "--ignore-not-found")


def test_where_there_are_no_such_rights_it_asks_for_no_policy(cluster: ControlPlane, namespace: str, tmp_path: Path):
    with operator(cluster, tmp_path, [namespace]):
        pass
