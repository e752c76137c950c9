"""`trainjob doctor` on an API server: what is installed, who may do what, and what refuses pods."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command, Said
from operator_process import account

from cluster.jobs import Jobs, document, eventually

LABELS = {"app.kubernetes.io/name": "trainjob-operator", "app.kubernetes.io/version": "0.0.9"}
IMAGE = "registry.example/trainjob:1"


def findings(said: Said) -> dict[str, dict[str, str]]:
    assert said.out, said
    return {each["check"]: each for each in json.loads(said.out)}


def examined(trainjob: Command, *arguments: str, **options: Any) -> dict[str, dict[str, str]]:
    return findings(trainjob("doctor", "-o", "json", "--timeout", "1s", *arguments, **options))


def install(jobs: Jobs, settings: dict[str, Any], *arguments: str) -> None:
    """Creates the objects of an operator in the namespace of `jobs`, with a replica that says it is ready."""
    metadata = {"name": "trainjob-operator", "namespace": jobs.namespace, "labels": LABELS}
    container = {"name": "operator", "image": IMAGE, "args": list(arguments)}
    pod = {
        "serviceAccountName": "trainjob-operator",
        "containers": [container],
        "volumes": [{"name": "settings", "configMap": {"name": "trainjob-operator"}}],
    }
    jobs.cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"settings.yaml": yaml.safe_dump(settings)},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": pod},
            },
        },
    )


def make_ready(jobs: Jobs) -> None:
    """Does what a kubelet does, and the operator with its Lease."""
    selector = "app.kubernetes.io/name=trainjob-operator"
    [pod] = eventually(lambda: jobs.cluster.find("pods", jobs.namespace, labels=selector))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    jobs.report("pods", pod["metadata"]["name"], ready)
    jobs.kubectl("wait", "deployment/trainjob-operator", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=60s")


def lease(jobs: Jobs, renewed: str) -> None:
    metadata = {"name": "trainjob-operator", "namespace": jobs.namespace}
    spec = {"holderIdentity": "replica", "renewTime": renewed}
    jobs.cluster.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def test_a_cluster_without_an_operator(trainjob: Command):
    found = examined(trainjob)
    assert {name: each["state"] for name, each in found.items() if name not in ("Kueue", "queues")} == {
        "server": "ok",
        "namespace": "ok",
        "TrainJob type": "ok",
        "permissions": "ok",
        "operator": "wrong",
        "KubeRay": "unknown",
        "nodes": "wrong",
        "admission": "ok",
        "image": "unknown",
    }
    assert found["operator"]["remedy"].startswith("helm install trainjob ")
    said = trainjob("doctor")
    assert said.code == 1
    assert "✗ operator: it is not installed\n    → helm install trainjob " in said.out
    gone = examined(trainjob, namespace="no-such-namespace")
    assert gone["namespace"]["remedy"] == "kubectl create namespace no-such-namespace"


def test_an_operator_that_does_not_work(jobs: Jobs, trainjob: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainjob.doctor.components._RENEWAL_SECONDS", 0.0)
    settings = {"image": IMAGE, "defaults": {"storage": {"uri": "s3://runs"}}}
    install(jobs, settings, "--progress-policy=no-such-policy")
    assert "no replica is ready" in examined(trainjob)["operator"]["message"]
    make_ready(jobs)
    assert "there is no Lease trainjob-operator" in examined(trainjob)["operator"]["message"]
    lease(jobs, "2026-01-02T03:04:05.000000Z")
    assert "no replica works: the Lease trainjob-operator is last renewed " in examined(trainjob)["operator"]["message"]
    lease(jobs, "2999-01-02T03:04:05.000000Z")
    found = examined(trainjob)
    assert found["operator"]["message"] == f"0.0.9, ready in the namespace {jobs.namespace}"
    assert (found["versions"]["state"], found["versions"]["remedy"]) == ("unknown", "pip install trainjob==0.0.9")
    assert found["operator's permissions"]["message"].startswith(
        "the operator may not get, list, watch, delete trainjobs.trainjob.dev; patch trainjobs/status.trainjob.dev; "
    )
    assert '"no-such-policy" not found' in found["progress policy"]["message"]
    install(jobs, settings | {"namespaces": ["elsewhere"]})
    found = examined(trainjob)
    assert found["operator"]["message"] == f"it does not watch the namespace {jobs.namespace}"
    assert found["progress policy"]["state"] == "unknown"
    install(jobs, {"imag": IMAGE})
    found = examined(trainjob)
    assert "imag  unknown field; did you mean image?" in found["settings"]["message"]
    assert found["image"]["state"] == "unknown"


def test_the_pod_is_deleted_whatever_happens(jobs: Jobs, trainjob: Command, tmp_path: Path):
    job = document("job", pods={"image": IMAGE}, storage={"uri": "s3://runs"}, workers={"nodePool": "h100"})
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    jobs.kubectl("label", "namespace", jobs.namespace, "pod-security.kubernetes.io/enforce=restricted")
    found = examined(trainjob, str(file))
    assert "Pod Security enforces restricted" in found["namespace"]["message"]
    assert found["admission"]["state"] == "ok"
    assert found["pod"]["message"].startswith(f"{IMAGE}: Starting: ")  # there are no nodes
    assert eventually(lambda: not jobs.cluster.find("pods", jobs.namespace, labels="batch.kubernetes.io/job-name"))
    assert json.loads(jobs.kubectl("get", "jobs", "-o", "json"))["items"] == []
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    file.write_text(yaml.safe_dump(job))
    jobs.kubectl("create", "quota", "none", "--hard=pods=0")
    found = examined(trainjob, str(file))
    assert found["admission"]["message"].startswith("QuotaExceeded: ")
    assert found["queues" if "queues" in found else "Kueue"]["state"] == "wrong"


def test_the_secrets_that_a_job_names(jobs: Jobs, trainjob: Command, tmp_path: Path):
    receivers = [{"webhook": {"secretName": "hook"}}, {"apprise": {"secretName": "chat"}, "events": ["Failed"]}]
    tracking = [{"wandb": {"secretName": "wandb"}}]
    job = document("job", pods={"image": IMAGE}, storage={"uri": "s3://runs"}, notify=receivers, tracking=tracking)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    install(jobs, {"image": IMAGE, "notify": {"secretNames": ["hook"]}})
    for name in ("hook", "wandb"):
        jobs.kubectl("create", "secret", "generic", name, "--from-literal=key=a")
    said = trainjob("doctor", "-o", "json", "--timeout", "1s", str(file))
    assert [each["message"] for each in json.loads(said.out) if each["check"] == "Secrets"] == [
        "spec.notify[1] gets no notifications: the operator may not read the Secret chat; notify.secretNames in its "
        "settings: hook",
        "hook, which spec.notify[0] names, has no url",
        f"spec.notify[1] names chat, which is not in the namespace {jobs.namespace}",
    ]
    job["spec"]["notify"] = [receivers[0] | {"webhook": {"secretName": "hook", "url": "https://a.example"}}]
    file.write_text(yaml.safe_dump(job))
    assert examined(trainjob, str(file))["Secrets"]["message"] == "hook, wandb, which the job names, exist"


def test_a_stranger_learns_which_verbs_are_missing(jobs: Jobs, trainjob: Command, tmp_path: Path):
    stranger = account(jobs, tmp_path)
    found = examined(trainjob, kubeconfig=stranger)
    assert found["permissions"]["message"].startswith(
        "you may not get, list, watch, create, patch, delete trainjobs.trainjob.dev; get, list pods; "
    )
    assert (
        "get, create pods/portforward; get secrets; create, delete jobs.batch; get rayjobs.ray.io in the "
        in (found["permissions"]["message"])
    )
    for name in ("namespace", "operator", "nodes", "KubeRay", "admission"):
        assert found[name]["state"] == "unknown"
        assert "you may not " in found[name]["message"]


def test_a_wrong_use(trainjob: Command, tmp_path: Path):
    missing = trainjob("doctor", kubeconfig=tmp_path / "none")
    assert (missing.code, missing.out) == (1, "")
    assert missing.error.startswith("there is no kubeconfig at ")
    assert trainjob("doctor", "--secret", "s3").error == "--secret goes with --storage URI"
    assert trainjob("doctor", "--storage", "https://runs").error.startswith("--storage: ")
    assert trainjob("doctor", "--storage", "runs").error.startswith("--storage: a pod cannot reach runs; ")
    assert trainjob("doctor", "--timeout", "soon").code == 2
