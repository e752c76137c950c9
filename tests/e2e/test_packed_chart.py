"""The packed chart, from an OCI registry, with no value set but where the images are."""

from pathlib import Path

import pytest
import yaml

from cluster.client import Cluster
from cluster.jobs import eventually
from e2e.test_release import helm, images
from e2e.train_jobs import TrainJobs
from kind.engine import sh
from kind.images import ROOT, push
from kind.install import install_chart
from servers.programs import program

CHART = ROOT / "charts" / "trainjob"


@pytest.mark.alone
def test_the_packed_chart_installs_from_a_registry(jobs: TrainJobs, cluster: Cluster, tmp_path: Path) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    operator, trainer = images(cluster)
    registry = operator.rpartition("/")[0]
    for target in ("operator", "trainer"):
        push(f"trainjob-{target}", f"{registry}/trainjob-{target}:{version}")
    sh(program("helm"), "package", CHART, "--destination", tmp_path)
    sh(program("helm"), "push", tmp_path / f"trainjob-{version}.tgz", f"oci://{registry}/charts", "--plain-http")
    try:
        helm(cluster, "uninstall", "--wait")
        own = ("--namespace", "trainjob-system", "--kubeconfig", cluster.kubeconfig)
        chart = (f"oci://{registry}/charts/trainjob", "--version", version, "--plain-http")
        sh(
            program("helm"),
            "install",
            "trainjob",
            *chart,
            *own,
            "--set",
            f"registry={registry}",
            "--wait",
            "--timeout=5m",
        )
        expected = [f"{registry}/trainjob-operator:{version}"]
        eventually(lambda: images_of_pods(cluster) == expected, 120, lambda: str(images_of_pods(cluster)))
        jobs.cluster.kubectl("get", "trainjobs.trainjob.dev", "--namespace", jobs.namespace)
    finally:
        install_chart(cluster, operator, trainer)


def images_of_pods(cluster: Cluster) -> list[str]:
    """The images of the release's pods."""
    wanted = ("--namespace", "trainjob-system", "--selector=app.kubernetes.io/instance=trainjob")
    return cluster.kubectl("get", "pods", *wanted, "--output=jsonpath={.items[*].spec.containers[*].image}").split()
