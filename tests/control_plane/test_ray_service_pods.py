"""The API server and KubeRay accept the manifest of `trainjob serve --manifest`."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from cluster.client import Cluster
from cluster.jobs import eventually
from predictor_runs import make_run
from tiny_sets import write_texts
from trainjob.cli.app import app


def manifest(folder: Path) -> str:
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 400}
    dataset = {"train": {"uri": str(write_texts(folder) / "train.csv")}, "text": ["title", "body"], "label": "label"}
    storage = {"uri": "s3://runs", "endpoint": "http://minio:9000", "secretName": "s3"}
    run = make_run(
        folder / "tags", {"model": {"textClassifier": {"encoder": encoder}}, "dataset": dataset, "storage": storage}
    )
    result = CliRunner().invoke(app, ["serve", str(run), "--manifest", "--set", "spec.pods.image=trainer:1"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_its_pods_are_made_where_pod_security_is_restricted(cluster: Cluster, namespace: str, tmp_path: Path):
    text = manifest(tmp_path)
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    own = ["--namespace", namespace]
    cluster.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", *own, stdin=text)

    def kinds() -> list[str]:
        pods = cluster.find("pods", namespace, labels="ray.io/is-ray-node=yes")
        return sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods)

    def events() -> str:
        return "\n".join(event["message"] for event in cluster.find("events", namespace))

    eventually(lambda: kinds() == ["head", "worker"], 60, events)
    [service] = json.loads(cluster.kubectl("get", "rayservices", "--output=json", *own))["items"]
    policy, written = yaml.safe_load_all(text)
    assert service["metadata"]["name"] == written["metadata"]["name"]
    assert len(cluster.find("pods", namespace, labels=f"trainjob.dev/serves={service['metadata']['name']}")) == 2
    [kept] = cluster.find("networkpolicies", namespace)
    assert kept["spec"] == policy["spec"]
    for pod in cluster.find("pods", namespace):
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            assert {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} <= {each["name"] for each in container["env"]}
    conditions = service["status"].get("conditions", [])
    assert [each for each in conditions if each["type"] == "Ready" and "alidation" in each["reason"]] == []
