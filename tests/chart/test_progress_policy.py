"""The policy on writes to a TrainJob's status: real tokens, bound to real pods, at a real API server."""

import json
from collections.abc import Generator

import pytest
from releases import NAMESPACE, OPERATOR, Object, installed, token
from reports import CLUSTER, CONDITION, PROGRESS, STATUS, TIME, make_job, patch, refusal

from cluster.control_plane import ControlPlane
from cluster.jobs import eventually
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.schema.base import fields_of

OTHER: Object = {
    "phase": "Succeeded",
    "reason": "Finished",
    "message": "",
    "conditions": [CONDITION | {"status": "False"}],
    "observedGeneration": 2,
    "startTime": "2026-01-02T00:00:00Z",
    "completionTime": "2026-01-02T00:00:00Z",
    "attempt": 2,
    "rayJobName": "other",
    "rayClusterName": "other-abcde",
    "headPodUID": "other",
    "dashboardURL": "elsewhere",
    "storage": {"uri": "s3://elsewhere", "secretName": "s3"},
    "workers": {"desired": 2, "ready": 1},
    "interruptions": {"count": 2, "lastReason": "Deleted", "lastPod": "other", "lastTime": TIME},
    "waitingSince": "2026-01-02T00:00:00Z",
    "notifications": [],
    "waiting": [],
}
"""Another value for every field except `training`."""
FOREIGN = "only the head pod "


@pytest.fixture(scope="module", autouse=True)
def policy(cluster: ControlPlane) -> Generator[None]:
    """The chart's policy, in force."""
    with installed(cluster, {}):
        make_job(cluster, "default", "probe", STATUS)
        bearer = token(cluster, "default", "default")
        eventually(lambda: "only the head pod" in patch(cluster, bearer, "default", PROGRESS, name="probe"))
        yield


def apply(cluster: ControlPlane, bearer: str, namespace: str, status: Object, manager: str) -> str:
    """The same by server-side apply, as the operator and the training process do it."""
    body = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "job"}, "status": status}
    content = "application/apply-patch+yaml"
    return refusal(cluster, bearer, namespace, "job", body, content, field_manager=manager, force=True)


def make_pod(cluster: ControlPlane, namespace: str, name: str) -> str:
    """The UID of a new pod of this name."""
    spec = {"containers": [{"name": "ray", "image": "ray"}]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    return uid_of(cluster, namespace, name)


def uid_of(cluster: ControlPlane, namespace: str, pod: str) -> str:
    return cluster.kubectl("get", "pod", pod, "--namespace", namespace, "--output=jsonpath={.metadata.uid}")


@pytest.fixture
def told(cluster: ControlPlane, namespace: str) -> Object:
    """The status of a job, which has every field; it names a pod that is there as the head."""
    told = STATUS | {"headPodUID": make_pod(cluster, namespace, f"{CLUSTER}-head-x7k2p")}
    make_job(cluster, namespace, "job", told)
    return told


@pytest.fixture
def head(cluster: ControlPlane, namespace: str, told: Object) -> str:
    """The head pod's token."""
    assert told["headPodUID"]
    return token(cluster, namespace, "default", f"{CLUSTER}-head-x7k2p")


def status(cluster: ControlPlane, namespace: str) -> Object:
    found = cluster.kubectl("get", "trainjob", "job", "--namespace", namespace, "--output=json")
    return json.loads(found)["status"]


def test_the_head_pod_reports_by_patch_and_by_apply(cluster: ControlPlane, namespace: str, told: Object, head: str):
    assert patch(cluster, head, namespace, PROGRESS) == ""
    assert status(cluster, namespace) == told | PROGRESS
    end = {"training": {"stage": "Finished", "percent": 100}}
    assert apply(cluster, head, namespace, end, "trainjob-trainer") == ""
    assert status(cluster, namespace) == told | end


def test_a_pod_with_the_name_of_a_head_is_refused(cluster: ControlPlane, namespace: str, told: Object):
    for name in (f"{CLUSTER}-head", f"{CLUSTER}-head-7qxwz", "job-8fj2s"):
        uid = make_pod(cluster, namespace, name)
        message = patch(cluster, token(cluster, namespace, "default", name), namespace, PROGRESS)
        assert f"{FOREIGN}{told['headPodUID']} may report" in message
        assert f"bound to pod {uid}" in message


def test_a_head_of_the_same_name_is_another_pod(cluster: ControlPlane, namespace: str, told: Object, head: str):
    name = f"{CLUSTER}-head-x7k2p"
    assert patch(cluster, head, namespace, PROGRESS) == ""
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--force", "--grace-period=0")
    uid = make_pod(cluster, namespace, name)
    bearer = token(cluster, namespace, "default", name)
    assert FOREIGN in patch(cluster, bearer, namespace, PROGRESS)
    make_job(cluster, namespace, "job", told | {"headPodUID": uid})
    assert patch(cluster, bearer, namespace, PROGRESS) == ""


@pytest.mark.usefixtures("head")
def test_a_token_of_no_pod_is_refused(cluster: ControlPlane, namespace: str):
    message = patch(cluster, token(cluster, namespace, "default"), namespace, PROGRESS)
    assert FOREIGN in message
    assert "bound to no pod" in message


def test_a_pod_of_another_namespace_is_refused(cluster: ControlPlane, namespace: str):
    uid = make_pod(cluster, "team-a", f"{CLUSTER}-head-x7k2p")
    make_job(cluster, namespace, "job", STATUS | {"headPodUID": uid})
    bearer = token(cluster, "team-a", "default", f"{CLUSTER}-head-x7k2p")
    assert "a service account of another namespace" in patch(cluster, bearer, namespace, PROGRESS)


def test_before_there_is_a_head_pod_nobody_reports(cluster: ControlPlane, namespace: str):
    make_job(cluster, namespace, "job", {"rayClusterName": CLUSTER})
    make_pod(cluster, namespace, f"{CLUSTER}-head-x7k2p")
    for bound in ([f"{CLUSTER}-head-x7k2p"], []):
        assert "it has no head pod" in patch(cluster, token(cluster, namespace, "default", *bound), namespace, PROGRESS)


@pytest.mark.parametrize("may_update", [False, True])
def test_another_controller_mirrors_the_status_of_its_own_trainjobs(
    cluster: ControlPlane, namespace: str, may_update: bool
):
    group = "rbac.authorization.k8s.io"
    cluster.kubectl("create", "serviceaccount", "mirror", "--namespace", namespace)
    role: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": namespace},
        "rules": [{"apiGroups": ["trainjob.dev"], "resources": ["trainjobs/status"], "verbs": ["patch", "update"]}],
    }
    binding: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "mirror", "namespace": namespace}],
    }
    bearer, finished = token(cluster, namespace, "mirror"), {"phase": "Succeeded"}
    make_job(cluster, "default", f"own-{namespace}", STATUS)
    make_job(cluster, "default", f"theirs-{namespace}", STATUS, managedBy="kueue.x-k8s.io/multikueue")
    if may_update:
        cluster.apply(role, binding)
        eventually(lambda: patch(cluster, bearer, "default", finished, name=f"theirs-{namespace}") == "")
        cluster.kubectl("delete", "clusterrolebinding,clusterrole", namespace)
    else:
        assert patch(cluster, bearer, "default", finished, name=f"theirs-{namespace}") != ""
    assert patch(cluster, bearer, "default", finished, name=f"own-{namespace}") != ""


def test_the_test_knows_every_field():
    assert set(STATUS) == set(OTHER) | {"training"} == set(fields_of(TrainJobStatus))


def test_no_other_field_may_be_changed_or_taken_away(cluster: ControlPlane, namespace: str, told: Object, head: str):
    for field, other in OTHER.items():
        for value in (other, None):
            assert "status.training only" in patch(cluster, head, namespace, PROGRESS | {field: value}), field
    assert status(cluster, namespace) == told


def test_nor_may_one_be_added(cluster: ControlPlane, namespace: str):
    make_job(cluster, namespace, "job", {"headPodUID": make_pod(cluster, namespace, "head")})
    bearer = token(cluster, namespace, "default", "head")
    assert "status.training only" in patch(cluster, bearer, namespace, PROGRESS | {"phase": "Succeeded"})


def test_the_operator_writes_all_and_its_fields_are_not_the_head_pod_s_to_drop(
    cluster: ControlPlane, namespace: str, told: Object, head: str
):
    bearer, own = token(cluster, NAMESPACE, OPERATOR), {"headPodUID": told["headPodUID"]}
    assert apply(cluster, bearer, namespace, OTHER | own, OPERATOR) == ""
    written = status(cluster, namespace)
    assert written.items() >= (OTHER | own).items()
    assert "status.training only" in apply(cluster, head, namespace, PROGRESS, OPERATOR)
    assert apply(cluster, head, namespace, PROGRESS, "trainjob-trainer") == ""
    assert status(cluster, namespace) == written | PROGRESS


def test_labels_and_spec_do_not_change_with_a_status(cluster: ControlPlane, namespace: str, head: str):
    body = {"metadata": {"labels": {"theirs": "yes"}}, "spec": {"suspend": True}, "status": PROGRESS}
    assert refusal(cluster, head, namespace, "job", body, "application/merge-patch+json") == ""
    found = json.loads(cluster.kubectl("get", "trainjob", "job", "--namespace", namespace, "--output=json"))
    assert "labels" not in found["metadata"]
    assert not found["spec"].get("suspend")
    assert found["status"]["training"] == PROGRESS["training"]
