"""Whatever the chart renders, a real API server takes."""

import json

import pytest
from releases import NAMESPACE, Object, Values, render

from cluster.control_plane import ControlPlane

VARIANTS: dict[str, Values] = {
    "as it is": {},
    "two namespaces": {"settings": {"namespaces": ["team-a", "team-b"]}},
    "no definition, no progress": {"crds": {"install": False}, "progress": {"enabled": False}},
    "a definition that goes": {"crds": {"keep": False}},
    "everything": {
        "replicas": 2,
        "image": {"repository": "registry.example/operator", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": ["registry"],
        "settings": {
            "imagePullSecrets": ["registry"],
            "nodePools": {
                "a100": {
                    "nodeSelector": {"gpu": "a100"},
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                    "gpusPerNode": 8,
                    "runtimeClassName": "nvidia",
                    "priorityClassName": "research",
                },
                "mi300": {"gpuResource": "amd.com/gpu"},
            },
            "defaults": {"workerCpus": 4, "startDeadline": "30m"},
            "notify": {
                "secretNames": ["hook", "chat"],
                "hosts": ["*.example.com"],
                "receivers": [{"webhook": {"secretName": "hook"}, "waitingLongerThan": "1h"}],
            },
        },
        "resources": {"requests": {"cpu": 0.5, "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "system", "operator": "Exists"}]}]
                }
            }
        },
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "ml"},
        "podAnnotations": {"note": "1"},
        "networkPolicy": {"enabled": True},
        "metrics": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": True},
        },
        "priorityClasses": {"research": {"value": 1000, "description": "Research"}, "low": {"value": -5}},
        "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}}],
    },
}


def with_namespace(found: Object) -> Object:
    """The object where Helm makes it: in the release's namespace unless it names another."""
    return found | {"metadata": {"namespace": NAMESPACE, **found["metadata"]}}


@pytest.mark.parametrize("name", VARIANTS)
def test_an_api_server_takes(cluster: ControlPlane, name: str):
    objects = [with_namespace(found) for found in render(VARIANTS[name])]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    options = ("--server-side", "--dry-run=server", "--validate=strict", "--output=name")
    accepted = cluster.kubectl("apply", *options, "--filename=-", stdin=manifest)
    assert len(accepted.splitlines()) == len(objects)
