"""Saves logs and objects of a failed test."""

from pathlib import Path

from cluster.client import Cluster, KubectlError

FOLDER = Path(__file__).parents[2] / "build" / "e2e"

KINDS = "trainjobs,rayjobs,rayclusters,jobs,pods,events"


def write_evidence(cluster: Cluster, namespace: str, folder: Path) -> None:
    """Objects, events and logs of a namespace, and the logs of the operators; where something cannot be read, why."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = _read(cluster, "get", KINDS, "--namespace", namespace, "--output=yaml")
    (folder / "objects.yaml").write_text(objects)
    for where in (namespace, "trainjob-system", "kuberay-system"):
        pods = _read(cluster, "get", "pods", "--namespace", where, "--output=name").splitlines()
        for name in (pod.removeprefix("pod/") for pod in pods if pod.startswith("pod/")):
            log = _read(cluster, "logs", name, "--namespace", where, "--all-containers", "--tail=2000")
            (folder / f"{name}.log").write_text(log)


def _read(cluster: Cluster, *arguments: str) -> str:
    try:
        return cluster.kubectl(*arguments)
    except KubectlError as error:
        return str(error)
