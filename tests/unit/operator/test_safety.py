"""Requests that a TrainJob is not allowed: each is refused with a message that names the field."""

from typing import Any

import pytest
from operator_objects import Object, trainjob

from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render
from trainjob_operator.settings import Settings

POOLS: Object = {
    "a100": {
        "nodeSelector": {"gpu": "a100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "affinity": {"podAffinity": {}},
        "pod": {"volumes": [{"name": "scratch", "emptyDir": {}}]},
        "annotations": {"example.com/network": "rdma"},
        "namespaces": ["vision", "team"],
    },
    "open": {"tolerations": [{"key": "open", "operator": "Exists"}]},
}
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/ray-worker"


def refusal(metadata: Object | None = None, settings: Object | None = None, **spec: Any) -> str:
    """The operator's reason for creating no RayJob, or an empty text."""
    given_settings = Settings.model_validate({"image": "i", "nodePools": POOLS, **(settings or {})})
    try:
        render(trainjob(metadata, **spec), given_settings)
    except RayJobError as error:
        return str(error) if error.reason == "NotAllowed" else error.reason
    return ""


VOLUMES: list[Object] = [
    {"hostPath": {"path": "/"}},
    {"nfs": {"server": "s", "path": "/"}},
    {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}},
    {"flexVolume": {"driver": "d"}},
    {"gitRepo": {"repository": "r"}},
    {"emptyDir": {}, "hostPath": {"path": "/"}},
    {"notYetKnown": {}},
]
CONTEXTS: list[tuple[str, Object]] = [
    ("root", {"runAsUser": 0}),
    ("root", {"runAsNonRoot": False}),
    ("root", {"runAsNonRoot": False, "runAsUser": 1000}),
    ("seccompProfile is Unconfined", {"seccompProfile": {"type": "Unconfined"}}),
    ("seccompProfile is None", {"seccompProfile": {"localhostProfile": "p"}}),
    ("appArmorProfile is Unconfined", {"appArmorProfile": {"type": "Unconfined"}}),
    ("seLinuxOptions", {"seLinuxOptions": {"type": "spc_t"}}),
    ("seLinuxOptions", {"seLinuxOptions": {"user": "system_u"}}),
    ("seLinuxOptions", {"seLinuxOptions": {"role": "sysadm_r"}}),
    ("kernel.msgmax", {"sysctls": [{"name": "net.ipv4.tcp_syncookies"}, {"name": "kernel.msgmax"}]}),
    ("hostProcess", {"windowsOptions": {"hostProcess": True}}),
]


@pytest.mark.parametrize("source", VOLUMES)
def test_volumes_of_the_node_are_refused(source: Object):
    assert "spec.pods.volumes: v is of the kind" in refusal(pods={"volumes": [{"name": "v", **source}]})


@pytest.mark.parametrize(("words", "context"), CONTEXTS)
def test_more_than_the_restricted_level_is_refused(words: str, context: Object):
    message = refusal(pods={"securityContext": context})
    assert message.startswith("spec.pods.securityContext: ")
    assert words in message


@pytest.mark.parametrize("where", ["metadata", "pods"])
def test_an_annotation_that_takes_the_confinement_away_is_refused(where: str):
    annotations = {"annotations": {APP_ARMOR: "unconfined"}}
    assert APP_ARMOR in (refusal(annotations) if where == "metadata" else refusal(pods=annotations))
    assert refusal({"annotations": {APP_ARMOR: "runtime/default"}}) == ""


def test_what_the_restricted_level_allows_is_taken():
    sources = (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
    volumes = [{"name": kind.lower(), kind: {}} for kind in sources] + [{"name": "default"}]
    context = {
        "runAsUser": 1000,
        "runAsGroup": 0,
        "fsGroup": 0,
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "seLinuxOptions": {"type": "container_t", "level": "s0:c1"},
        "sysctls": [{"name": "net.ipv4.tcp_fin_timeout", "value": "30"}],
        "windowsOptions": {"hostProcess": False},
    }
    assert refusal(pods={"volumes": volumes, "securityContext": context}) == ""


def test_a_namespace_may_be_let_do_more_and_only_that_one():
    pods = {"volumes": [{"name": "v", "hostPath": {"path": "/data"}}], "securityContext": {"runAsUser": 0}}
    assert refusal(settings={"unrestrictedNamespaces": ["team"]}, pods=pods) == ""
    assert refusal(settings={"unrestrictedNamespaces": ["teams", "vision"]}, pods=pods) != ""


@pytest.mark.parametrize("where", ["metadata", "pods"])
def test_the_labels_of_kuberays_pods_are_not_a_jobs_to_wear(where: str):
    labels = {"labels": {"app.kubernetes.io/component": "kuberay-operator", "a": "b"}}
    message = refusal(labels if where == "metadata" else None, pods=labels if where == "pods" else {})
    assert "app.kubernetes.io/component: kuberay-operator mark KubeRay's own pods" in message
    assert refusal({"labels": {"app.kubernetes.io/component": "trainer"}}) == ""


@pytest.mark.parametrize("key", ["ray.io/cluster", "ray.io/node-type", "trainjob.dev/uid", "trainjob.dev/workers"])
@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_what_tells_a_pods_part_is_not_a_jobs_to_say(key: str, kind: str):
    for message in (refusal({kind: {key: "x"}}), refusal(pods={kind: {key: "x"}})):
        assert f"{kind}: {key} is reserved for KubeRay and the operator" in message
    assert refusal({kind: {f"x{key}": "x", "example.com/ray.io": "x"}}) == ""


@pytest.mark.parametrize(
    "name", ["RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_K8S_TOKEN_AUTH"]
)
def test_rays_token_is_not_a_jobs_to_switch_off(name: str):
    pods = {"env": [{"name": name, "value": "disabled"}]}
    assert f"spec.pods.env: {name} is set by KubeRay" in refusal(pods=pods)
    assert refusal(settings={"network": {"rayTokens": False}}, pods=pods) == ""


POOL = {"nodePool": "a100"}
OVERRIDES: list[tuple[str, Object]] = [
    ("nodeSelector: gpu is a100 in the pool a100", {"nodeSelector": {"gpu": "h100"}}),
    ("affinity: the pool a100 sets its own podAffinity", {"affinity": {"podAffinity": {}}}),
    ("volumes: the pool a100 has its own volume scratch", {"volumes": [{"name": "scratch", "emptyDir": {}}]}),
    ("annotations: the pool a100 sets its own example.com/network", {"annotations": {"example.com/network": "mine"}}),
]


@pytest.mark.parametrize(("words", "pods"), OVERRIDES)
def test_a_pool_wins_over_its_jobs(words: str, pods: Object):
    assert words in refusal(workers=POOL, pods=pods)
    assert refusal(pods=pods) == ""


def test_a_job_may_add_to_its_pool():
    pods = {
        "nodeSelector": {"gpu": "a100", "zone": "b"},
        "affinity": {"nodeAffinity": {}},
        "annotations": {"example.com/network": "rdma", "note": "mine"},
    }
    assert refusal(workers=POOL, pods=pods) == ""


def test_a_pool_is_for_its_namespaces():
    for namespace in ("team", "vision"):
        assert refusal({"namespace": namespace}, workers=POOL) == ""
    assert "the pool a100 is not available to TrainJobs in the namespace other" in refusal(
        {"namespace": "other"}, workers=POOL
    )
    assert refusal({"namespace": "other"}, workers={"nodePool": "open"}) == ""


@pytest.mark.parametrize("toleration", [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"operator": "Exists"}])
def test_a_pool_is_not_reached_by_its_taint(toleration: Object):
    pods = {"tolerations": [toleration]}
    assert "spec.pods.tolerations: the pool a100 is not available to" in refusal({"namespace": "other"}, pods=pods)
    assert refusal({"namespace": "team"}, pods=pods) == ""
    assert refusal({"namespace": "other"}, pods={"tolerations": [{"key": "open"}]}) == ""


def test_all_that_is_wrong_is_named_at_once():
    message = refusal({"labels": {"ray.io/x": "y"}}, pods={"securityContext": {"runAsUser": 0}})
    assert message.count("; ") == 1
