"""The manifests that people apply."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml
from releases import CHART, ROOT, documents, installed, render, settings_file

from cluster.control_plane import ControlPlane
from cluster.jobs import eventually
from pages import trainjob_of, yaml_of
from servers.programs import requirement, sources
from trainjob.api import TrainJob
from trainjob.cluster.volume_reader import reader_pod
from trainjob_operator.render import render as render_ray_job
from trainjob_operator.render import with_storage
from trainjob_operator.settings import Settings

MANIFESTS = ROOT / "manifests"
EXAMPLES = sorted((MANIFESTS / "examples").glob("*.yaml"))
POOLS = CHART / "examples" / "node-pools.yaml"


@pytest.fixture(scope="module")
def definition(cluster: ControlPlane) -> Generator[None]:
    with installed(cluster, yaml.safe_load(POOLS.read_text())):
        yield


def test_an_api_server_accepts_the_operator_without_helm(cluster: ControlPlane, tmp_path: Path):
    manifest = tmp_path / "dist" / "install.yaml"
    command = [sys.executable, ROOT / "hack" / "install_manifest.py", manifest]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "hack")}, check=True, timeout=120)
    objects = documents(manifest.read_text())
    assert {"CustomResourceDefinition", "Deployment", "ValidatingAdmissionPolicy"} <= {each["kind"] for each in objects}
    order = [each["kind"] for each in objects]
    assert order.index("ValidatingAdmissionPolicyBinding") < order.index("ClusterRole")
    options = ("--server-side", "--dry-run=server", "--validate=strict", "--output=name")
    assert len(cluster.kubectl("apply", *options, "--filename", manifest).splitlines()) == len(objects)
    assert "helm" not in manifest.read_text().lower()


def test_kuberay_is_the_version_that_the_tests_run(cluster: ControlPlane, tmp_path: Path):
    module, version = requirement("kuberay")
    folder = shutil.copytree(MANIFESTS / "kuberay", tmp_path / "kuberay")
    text, remote = (folder / "kustomization.yaml").read_text(), f"{module}/config/default?ref={version}"
    assert remote in text
    (tmp_path / "ray-operator").symlink_to(sources("kuberay"))  # the same files, as they are on this machine
    (folder / "kustomization.yaml").write_text(text.replace(remote, "../ray-operator/config/default"))
    manifests = cluster.kubectl("kustomize", folder).split("\n---\n")
    others = [text for text in manifests if "\nkind: CustomResourceDefinition\n" not in text]  # those are 4 MB
    objects = [found for text in others for found in documents(text)]
    assert len(others) == len(manifests) - 4
    namespaces = {found["metadata"].get("namespace", "kuberay-system") for found in objects}
    subjects = {subject["namespace"] for found in objects for subject in found.get("subjects", [])}
    assert namespaces == subjects == {"kuberay-system"}
    images = [
        container["image"]
        for found in objects
        if found["kind"] == "Deployment"
        for container in found["spec"]["template"]["spec"]["containers"]
    ]
    assert [image.rpartition(":")[2] for image in images] == [version]


@pytest.mark.usefixtures("definition")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_admitted_and_rendered(cluster: ControlPlane, path: Path):
    options = ("--dry-run=server", "--validate=strict", "--output=yaml", "--filename", path)
    made = documents(cluster.kubectl("create", *options))
    [admitted] = [found for found in made if found["kind"] == "TrainJob"]
    settings = Settings.model_validate(yaml.safe_load(settings_file(render(yaml.safe_load(POOLS.read_text())))))
    ray_job = render_ray_job(TrainJob.model_validate(admitted, by_alias=True, by_name=False), settings)
    cluster.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", stdin=json.dumps(ray_job))


def test_the_quickstarts_values_have_what_its_trainjob_needs_with_and_without_gpus():
    values, _, gpus = map(yaml.safe_load, yaml_of("docs/quickstart.md"))
    settings = Settings.model_validate(yaml.safe_load(settings_file(render(values))))
    document = yaml.safe_load(trainjob_of("docs/quickstart.md", "s3://datasets/projects.csv"))
    for more, resource in (({}, "memory"), (gpus, "nvidia.com/gpu")):
        metadata = {**document["metadata"], "namespace": "team", "uid": "11111111"}
        job = TrainJob.model_validate({**document, "metadata": metadata, "spec": document["spec"] | more})
        ray_job = render_ray_job(with_storage(job, None, settings), settings)
        [group] = ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        assert resource in group["template"]["spec"]["containers"][0]["resources"]["limits"]


def test_a_pod_that_reads_a_volume_is_admitted_where_pods_are_restricted(cluster: ControlPlane):
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": labels}})
    eventually(lambda: cluster.kubectl("get", "serviceaccount", "default", "--namespace=restricted"))
    [document] = [
        each for each in documents((MANIFESTS / "examples/quickstart.yaml").read_text()) if each["kind"] == "TrainJob"
    ]
    job = TrainJob.model_validate(document | {"metadata": {"name": "digits", "namespace": "restricted", "uid": "1"}})
    head = render_ray_job(job, Settings(image="registry.example/trainjob:1"))["spec"]["rayClusterSpec"]["headGroupSpec"]
    spec = reader_pod(head["template"]["spec"], "/mnt/storage/digits-1")
    [container] = spec["containers"]
    assert container["volumeMounts"] == [{"name": "trainjob-storage", "mountPath": "/mnt/storage", "readOnly": True}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader"}, "spec": spec}
    options = ("--dry-run=server", "--validate=strict", "--namespace=restricted", "--filename=-")
    assert "reader" in cluster.kubectl("create", *options, stdin=json.dumps(pod))


def test_there_is_an_example_of_each_kind():
    jobs = [found["spec"] for path in EXAMPLES for found in documents(path.read_text()) if found["kind"] == "TrainJob"]
    assert {kind for job in jobs for kind in job["model"]} == {"textClassifier", "imageClassifier", "function"}
    assert {kind for job in jobs for kind in job["storage"]} >= {
        "uri",
        "endpoint",
        "secretName",
        "persistentVolumeClaim",
    }
