"""Kubernetes' own objects have the same schema in a TrainJob as in KubeRay's RayJob, into which they are copied."""

import json
from typing import Any

import pytest

from cluster.client import Cluster
from trainjob.crd.kubernetes_types import kubernetes_schema

TYPES = ("type", "format", "x-kubernetes-int-or-string")
LIMITS = ("pattern", "enum", "minimum", "maximum")


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> dict[str, Any]:
    """The properties of a pod's spec in a RayJob."""
    definition = json.loads(cluster.kubectl("get", "crd", "rayjobs.ray.io", "--output=json"))
    (schema,) = (v["schema"]["openAPIV3Schema"] for v in definition["spec"]["versions"] if v["name"] == "v1")
    for name in ("spec", "rayClusterSpec", "headGroupSpec", "template", "spec"):
        schema = schema["properties"][name]
    return schema["properties"]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("V1EnvVar", "env"),
        ("V1EnvFromSource", "envFrom"),
        ("V1VolumeMount", "volumeMounts"),
        ("V1Volume", "volumes"),
        ("V1Toleration", "tolerations"),
        ("V1Affinity", "affinity"),
        ("V1LocalObjectReference", "imagePullSecrets"),
        ("V1PodSecurityContext", "securityContext"),
    ],
)
def test_what_a_trainjob_takes_a_rayjob_takes(pod: dict[str, Any], name: str, field: str) -> None:
    properties = pod if field in pod else pod["containers"]["items"]["properties"]
    theirs = properties[field]
    compare(kubernetes_schema(name), theirs.get("items", theirs), field)


def compare(ours: dict[str, Any], theirs: dict[str, Any], path: str) -> None:
    """A field that their Kubernetes is too old for is dropped with a warning; all others must be of the same type, and
    have the same limits where theirs has any."""
    for keyword in TYPES:
        assert ours.get(keyword) == theirs.get(keyword), (path, keyword)
    for keyword in LIMITS:
        assert theirs.get(keyword) in (None, ours.get(keyword)), (path, keyword)
    assert set(ours.get("required", ())) == set(theirs.get("required", ())), path
    for name, inner in ours.get("properties", {}).items():
        if name in theirs["properties"]:
            compare(inner, theirs["properties"][name], f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in ours:
            compare(ours[inner], theirs[inner], f"{path}[]")
