"""A control plane of these tests' own: what the chart installs holds for a whole cluster."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from releases import DEFINITION, Release

from cluster.control_plane import ControlPlane
from servers.programs import sources

AUDITED = "trainjob-operator"
"""The service account whose requests are written down."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[ControlPlane]:
    """A cluster with the definitions of monitoring.

    What the operator asks for is in the file `audit.log` of its folder.
    """
    control_plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    api_server = control_plane.components["kube-apiserver"]
    api_server.command = [*api_server.command, *_audit(control_plane.folder)]
    try:
        control_plane.up()
        _prepare(control_plane)
        yield control_plane
    finally:
        control_plane.down()


@pytest.fixture
def release(cluster: ControlPlane) -> Generator[Release]:
    """The chart that is not yet installed; after the test nothing is left of it."""
    release = Release(cluster)
    yield release
    if release.get("secret", "sh.helm.release.v1.trainjob.v1") is not None:
        release.uninstall()
    cluster.kubectl("delete", DEFINITION, "--ignore-not-found")


def _prepare(cluster: ControlPlane) -> None:
    definitions = sources("monitoring") / "example" / "prometheus-operator-crd"
    files = [
        f"--filename={definitions}/monitoring.coreos.com_{name}.yaml" for name in ("servicemonitors", "prometheusrules")
    ]
    cluster.kubectl("apply", "--server-side", *files)
    for name in ("trainjob-system", "team-a", "team-b"):
        cluster.kubectl("create", "namespace", name)
    cluster.await_definitions()


def _audit(folder: Path) -> list[str]:
    rule = {"level": "Metadata", "users": [f"system:serviceaccount:trainjob-system:{AUDITED}"]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [rule, {"level": "None"}],
    }
    (folder / "audit.json").write_text(json.dumps(policy))
    return [f"--audit-policy-file={folder / 'audit.json'}", f"--audit-log-path={folder / 'audit.log'}"]
