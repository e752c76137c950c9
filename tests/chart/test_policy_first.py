"""The right to report progress is never there without the policy of who may."""

from typing import Any

import pytest
from releases import HelmError, Release, token
from reports import PROGRESS, STATUS, make_job, patch

from cluster.control_plane import ControlPlane
from cluster.jobs import eventually

REPORTER = "trainjob-reporter"
BROKEN: dict[str, Any] = {
    "extraObjects": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "broken"}, "spec": {"ports": [{"port": 99999}]}}
    ]
}
"""Values that make an installation fail after the roles and before the policies."""

WITH_PROGRESS: dict[str, Any] = {"progress": {"enabled": True}}
WHOLE: dict[str, Any] = WITH_PROGRESS | {"extraObjects": []}


def policies(cluster: ControlPlane) -> set[str]:
    """Names of all policies and bindings."""
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    return set(cluster.kubectl("get", kinds, "--output=jsonpath={.items[*].metadata.name}").split())


def is_guarded(cluster: ControlPlane) -> bool:
    """Whether a service account that may patch a status is refused because it is no head pod."""
    cluster.await_definitions()
    make_job(cluster, "default", "probe", STATUS)
    bearer = token(cluster, "default", "default")
    account = ("--as=system:serviceaccount:default:default", "--as-group=system:serviceaccounts")
    options = ("can-i", "patch", "trainjobs.trainjob.dev", "--subresource=status", *account)
    eventually(lambda: cluster.kubectl("auth", *options).strip() == "yes")
    return "only the head pod" in patch(cluster, bearer, "default", PROGRESS, name="probe")


def test_an_installation_that_fails_between_roles_and_policies_leaves_a_guard(cluster: ControlPlane, release: Release):
    with pytest.raises(HelmError, match="99999"):
        release.install(BROKEN)
    assert cluster.kubectl("get", "clusterrolebinding", REPORTER, "--output=name")
    eventually(lambda: is_guarded(cluster))
    release.upgrade(WHOLE)
    assert policies(cluster) == {REPORTER}, "the guard has gone"
    eventually(lambda: is_guarded(cluster))
    release.uninstall()
    assert policies(cluster) == set()


def test_an_upgrade_that_brings_the_right_brings_the_policy_first(cluster: ControlPlane, release: Release):
    assert "The operator is not ready without it" not in release.install({"progress": {"enabled": False}})
    assert policies(cluster) == set()
    with pytest.raises(HelmError, match="99999"):
        release.upgrade(BROKEN | WITH_PROGRESS)
    assert f"{REPORTER}-guard" in policies(cluster)
    release.upgrade(WHOLE)
    assert policies(cluster) == {REPORTER}
    release.upgrade({"progress": {"enabled": False}})
    assert policies(cluster) == set()
    release.rollback()
    assert policies(cluster) == {REPORTER}
