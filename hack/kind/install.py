"""Installs KubeRay and MinIO, in the versions pinned for the tests, and the project's own chart."""

import json
import shutil
import tempfile
from pathlib import Path

import yaml

from cluster.client import Cluster
from kind import object_store
from kind.engine import sh
from kind.images import ROOT, Images
from servers.programs import program, sources

HERE = Path(__file__).parent


def install(cluster: Cluster, images: Images) -> None:
    """Installs everything that uses the images, or updates it."""
    _install_kuberay(cluster, images.kuberay)
    minio = (HERE / "minio.yaml").read_text().replace("IMAGE", images.minio)
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=minio)
    install_chart(cluster, images.operator, images.trainer)
    for namespace, deployment in (("kuberay-system", "kuberay-operator"), ("minio", "minio")):
        cluster.kubectl("rollout", "status", f"deployment/{deployment}", "--namespace", namespace, "--timeout=300s")
    object_store.prepare(cluster)


def install_chart(cluster: Cluster, operator: str, trainer: str, checkout: Path = ROOT, *more: str) -> None:
    """Installs or upgrades to the chart of a checkout, with these images and additional Helm options."""
    settings = list(more)
    for key, image in (("image", operator), ("trainer.image", trainer)):
        repository, tag = image.rsplit(":", 1)
        settings += ["--set", f"{key}.repository={repository},{key}.tag={tag}"]
    sh(
        program("helm"), "upgrade", "trainjob", checkout / "charts" / "trainjob", "--install",
        "--namespace", "trainjob-system", "--create-namespace", "--kubeconfig", cluster.kubeconfig,
        "--values", HERE / "values.yaml", *settings, "--wait", "--timeout", "5m",
    )  # fmt: skip


def _install_kuberay(cluster: Cluster, image: str) -> None:
    repository, tag = image.rsplit(":", 1)
    values = yaml.safe_load((HERE / "values.yaml").read_text())
    placement = [
        {"op": "add", "path": f"/spec/template/spec/{field}", "value": values[field]}
        for field in ("affinity", "tolerations")
    ]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(sources("kuberay") / "config", Path(folder) / "config", copy_function=shutil.copyfile)
        kustomization = {
            "namespace": "kuberay-system",
            "resources": ["config/crd", "config/rbac", "config/manager"],
            "images": [{"name": "kuberay/operator", "newName": repository, "newTag": tag}],
            "patches": [{"target": {"kind": "Deployment"}, "patch": json.dumps(placement)}],
        }
        (Path(folder) / "kustomization.yaml").write_text(json.dumps(kustomization))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kuberay-system"}}
        cluster.apply(namespace)
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", folder)
        cluster.await_definitions()
