"""TrainJob → RayService."""

from typing import Any

import pytest
import yaml

from trainjob.api import TrainJob
from trainjob.serving.config import Served, serve_config
from trainjob_operator.ray_service import ray_service
from trainjob_operator.settings import Settings

CONFIG = serve_config(Served(folder="s3://runs/tags", name="tags", endpoint="http://minio:9000"), cpus=2, gpus=0)


def service(**spec: Any) -> dict[str, Any]:
    job = TrainJob.model_validate(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "tags", "namespace": "team", "uid": "1234"},
            "spec": {
                "model": {"textClassifier": {"encoder": {}}},
                "dataset": {"train": {"uri": "s3://data/train.csv"}, "text": ["title"], "label": "tag"},
            }
            | spec,
        }
    )
    return ray_service(job, Settings(image="trainer:1"), 1.5, CONFIG, {"A": "1"})


def pods(document: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = document["spec"]["rayClusterConfig"]
    return [each["template"] for each in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_it_deploys_what_it_is_given():
    made = service()
    assert (made["kind"], made["metadata"]["name"], made["metadata"]["namespace"]) == ("RayService", "tags", "team")
    assert yaml.safe_load(made["spec"]["serveConfigV2"]) == CONFIG
    head, worker = pods(made)
    assert made["spec"]["rayClusterConfig"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    [group] = made["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    assert group["rayStartParams"]["num-cpus"] == "2"  # whole ones, as many as the replica asks for
    assert worker["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    for pod in (head, worker):
        assert {"name": "A", "value": "1"} in pod["spec"]["containers"][0]["env"]


@pytest.mark.parametrize("index", [0, 1])
def test_its_pods_are_as_safe_as_those_that_trained(index: int):
    spec = pods(service())[index]["spec"]
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "readinessProbe" not in container  # KubeRay's own asks Ray Serve, too


def test_the_operator_takes_its_pods_for_nobodys():
    """Labels of a TrainJob would have them counted as its workers."""
    for pod in pods(service(pods={"labels": {"team": "a"}})):
        assert pod["metadata"] == {"labels": {"team": "a", "trainjob.dev/serves": "tags"}, "annotations": {}}


def test_the_credentials_are_named_only():
    made = service(storage={"uri": "s3://runs", "secretName": "s3"})
    for pod in pods(made):
        env = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
        reference = env["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]
        assert reference == {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY", "optional": False}


def test_the_volume_of_the_run_is_mounted():
    for pod in pods(service(storage={"persistentVolumeClaim": "runs"})):
        assert {"name": "trainjob-storage", "mountPath": "/mnt/storage"} in pod["spec"]["containers"][0]["volumeMounts"]
        assert {"name": "trainjob-storage", "persistentVolumeClaim": {"claimName": "runs"}} in pod["spec"]["volumes"]


def test_gpus_are_the_workers():
    worker = pods(service(workers={"gpus": 1, "cpus": 4, "memory": "8Gi"}))[1]["spec"]["containers"][0]
    assert worker["resources"]["limits"] == {"memory": "8Gi", "nvidia.com/gpu": "1"}
