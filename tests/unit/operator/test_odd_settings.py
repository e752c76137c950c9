"""Whatever stands in the settings' file: Settings that a RayJob can be made with, or a UserError that names the field.

`make soak` tries many more.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from operator_objects import trainjob

from odd_documents import odd_yaml, spoiled
from soak import examples
from trainjob.errors import UserError
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render, with_storage
from trainjob_operator.settings import Settings, load_settings

FULL: dict[str, Any] = {
    "image": "registry.example.com/trainjob:1.0",
    "imagePullPolicy": "Always",
    "imagePullSecrets": ["registry"],
    "rayVersion": "2.60.0",
    "nodePools": {
        "a100": {
            "nodeSelector": {"gpu": "a100"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "gpuResource": "nvidia.com/gpu",
            "gpusPerNode": 8,
            "resources": {"rdma/hca": 1},
            "env": {"NCCL_IB_HCA": "mlx5"},
            "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"},
            "capabilities": ["IPC_LOCK"],
            "runtimeClassName": "nvidia",
            "priorityClassName": "research",
            "pod": {
                "hostNetwork": True,
                "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
                "dnsConfig": {"nameservers": ["10.0.0.1"]},
            },
        },
        "cpu": {},
    },
    "defaults": {
        "storage": {"uri": "s3://runs", "endpoint": "http://minio:9000", "secretName": "s3"},
        "namespaceStorage": {"team": {"persistentVolumeClaim": "runs"}},
        "head": {"cpus": 2, "memory": "8Gi"},
        "workerCpus": 1.5,
        "workerMemory": "16Gi",
        "dataCpus": 1,
        "startDeadline": "30m",
        "labels": {"team": "a"},
        "annotations": {"example.com/note": "x"},
    },
    "namespaces": ["team-a", "team-b"],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "settings.yaml"


def check(file: Path) -> None:
    """Whatever else is raised fails the test."""
    try:
        settings = load_settings(file)
    except UserError:
        return
    for pool in [None, *settings.node_pools]:
        for storage in ({"uri": "s3://runs"}, None):
            check_rendering(settings, pool, storage)


def check_rendering(settings: Settings, pool: str | None, storage: Any) -> None:
    job = trainjob(storage=storage, workers={"count": 4, "gpus": 1, **({"nodePool": pool} if pool else {})})
    try:
        ray_job = render(with_storage(job, None, settings), settings)
    except RayJobError:
        return
    json.dumps(ray_job, allow_nan=False).encode()


@examples(100)
@given(spoiled(st.just(FULL)))
def test_settings_of_any_values(file: Path, document: Any):
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    check(file)


@examples(100)
@given(odd_yaml(st.just(FULL)))
def test_settings_in_any_yaml(file: Path, text: str):
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    check(file)
