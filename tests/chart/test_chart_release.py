"""The chart's life in a cluster: installed, upgraded from the one before, rolled back, uninstalled."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from releases import CHART, DEFINITION, NAMESPACE, ROOT, Release, installed

from cluster.control_plane import ControlPlane
from cluster.jobs import document
from earlier_chart import checkout_before

VALUES = {"settings": {"nodePools": {"a100": {"gpusPerNode": 8}}}}


def job(cluster: ControlPlane, namespace: str) -> dict[str, Any]:
    return json.loads(cluster.kubectl("get", "trainjob", "job", "--namespace", namespace, "--output=json"))


def holds(found: Any, known: Any) -> bool:
    """Whether all that was known is there. An API server fills in the defaults of fields that a new CRD has."""
    if isinstance(known, dict):
        return all(name in found and holds(found[name], value) for name, value in known.items())
    return found == known


def make_job(cluster: ControlPlane, namespace: str) -> dict[str, Any]:
    """A TrainJob that is running."""
    cluster.await_definitions()
    cluster.kubectl("apply", "--namespace", namespace, "--filename=-", stdin=json.dumps(document("job")))
    status = json.dumps({"status": {"phase": "Running", "rayClusterName": "job-abcde", "training": {"percent": 40}}})
    own = ("--namespace", namespace, "--subresource=status", "--type=merge")
    cluster.kubectl("patch", "trainjob", "job", *own, "--patch", status)
    return job(cluster, namespace)


def checksum(release: Release) -> str:
    deployment = release.get("deployment")
    assert deployment is not None
    return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]


def test_jobs_outlive_upgrade_rollback_and_uninstallation(release: Release, namespace: str, tmp_path: Path):
    cluster = release.cluster
    assert isinstance(cluster, ControlPlane)
    release.install({}, checkout_before(tmp_path) / CHART.relative_to(ROOT))
    before, running = checksum(release), make_job(cluster, namespace)
    release.upgrade(VALUES)
    assert release.settings()["nodePools"] == VALUES["settings"]["nodePools"]
    assert checksum(release) != before
    assert holds(job(cluster, namespace), running)
    release.rollback()
    assert release.settings()["nodePools"] == {}
    assert checksum(release) == before
    assert holds(job(cluster, namespace), running)
    release.uninstall()
    assert release.get("deployment") is None
    assert holds(job(cluster, namespace), running)
    release.install({})  # takes over the definition that it left
    assert holds(job(cluster, namespace), running)


def test_an_upgrade_brings_the_definition_up_to_date(release: Release, tmp_path: Path):
    old = tmp_path / "trainjob"
    subprocess.run(["cp", "-r", CHART, old], check=True)
    definition = old / "files" / "crd.yaml"
    definition.write_text(re.sub(r"shortNames:\n +- tj", "shortNames: [old]", definition.read_text()))

    def short_names() -> str:
        return release.cluster.kubectl("get", DEFINITION, "--output=jsonpath={.spec.names.shortNames}")

    release.install({}, old)
    assert short_names() == '["old"]'
    release.upgrade({})
    assert short_names() == '["tj"]'


def test_a_definition_that_is_not_kept_goes_with_the_release(release: Release):
    release.install({"crds": {"keep": False}})
    release.uninstall()
    release.cluster.kubectl("wait", DEFINITION, "--for=delete", "--timeout=30s")


def test_the_operator_s_pod_meets_the_restricted_level(cluster: ControlPlane):
    with installed(cluster, {}) as release:
        deployment = release.get("deployment")
        assert deployment is not None
        pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **deployment["spec"]["template"]}
        pod["metadata"]["name"] = "operator"
        level = "pod-security.kubernetes.io/enforce"
        cluster.kubectl("label", "namespace", NAMESPACE, f"{level}=restricted")
        options = ("--namespace", NAMESPACE, "--dry-run=server", "--filename=-", "--output=name")
        assert cluster.kubectl("create", *options, stdin=json.dumps(pod)).strip() == "pod/operator"
        cluster.kubectl("label", "namespace", NAMESPACE, f"{level}-")


def test_notes_do_not_warn_where_kuberay_is(release: Release):
    notes = release.install({})
    assert "STATUS: deployed" in notes
    assert "WARNING" not in notes
