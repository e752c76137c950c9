"""Watches that tell what they should not: the operator begins them anew and goes on."""

import asyncio
import json
from pathlib import Path

import pytest
from http_proxy import http_proxy_to
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from operator_process import OperatorProcess, account, answer_at, operator

from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually, new_namespace
from nightly import at_night
from trainjob.api.resources import TRAIN_JOBS
from trainjob_operator.access import MANY_NAMESPACES
from trainjob_operator.api import Api

ABSENT = [f"absent-{number}" for number in range(MANY_NAMESPACES)]


def _error(code: int) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "etcdserver: no leader",
        "code": code,
    }
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


@pytest.mark.parametrize(
    "last",
    [
        b'{"type": "MODIFIED", "object": {"kind',
        at_night(_error(500)),
        _error(410),
        at_night(b"<html>502 Bad Gateway</html>\n"),
        at_night(b"null\n"),
    ],
    ids=["half an object", "an error", "a version that is gone", "a page", "null"],
)
def test_a_watch_that_ends_in_nonsense_is_begun_anew(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path, last: bytes
):
    with (
        http_proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace], environment=environment) as process,
    ):
        jobs.create("first", suspend=True)
        jobs.until("first", phase="Suspended")
        assert proxy.end_watches(last) == 3
        jobs.create("second", suspend=True)
        jobs.until("second", phase="Suspended")
        assert process.process.poll() is None
        eventually(lambda: process.get("/readyz") == "")
        assert process.stop() == 0


def test_a_list_that_breaks_off_is_listed_again(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    """Lists are in the order of names: `b`, the older one, was missing in this list."""
    jobs.create("b", suspend=True)
    jobs.create("a", suspend=True)
    with http_proxy_to(control_plane, tmp_path) as (proxy, environment):
        proxy.last_listed = "a"
        with operator(jobs.cluster, tmp_path, [jobs.namespace], environment=environment):
            jobs.until("b", phase="Suspended")
            jobs.until("a", phase="Suspended")
        assert proxy.last_listed is None


def test_what_cannot_be_watched_is_said_until_it_can_be(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    with (
        http_proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace], environment=environment) as process,
    ):
        jobs.create("first", suspend=True)
        jobs.until("first", phase="Suspended")
        proxy.delay = 5.0  # before it lists anew
        proxy.end_watches(_error(500))
        eventually(lambda: "cannot be watched: WatchingError" in answer_at(process.port, "/readyz"))
        assert "trainjob_access_missing 1.0" in process.get("/metrics")
        proxy.delay = 0.0
        eventually(lambda: process.get("/readyz") == "")
        assert "trainjob_access_missing 0.0" in process.get("/metrics")


def test_a_namespace_that_is_refused_does_not_hold_up_the_others(jobs: Jobs, tmp_path: Path):
    kubeconfig = account(jobs, tmp_path)
    jobs.kubectl(
        "create",
        "rolebinding",
        "operator",
        "--clusterrole=cluster-admin",
        f"--serviceaccount={jobs.namespace}:operator",
    )
    others = {"KUBECONFIG": str(kubeconfig)}
    process = OperatorProcess(jobs.cluster, tmp_path, ["default", jobs.namespace, *ABSENT], environment=others)
    try:
        jobs.create(suspend=True)
        jobs.until(phase="Suspended")
    finally:
        process.kill()


def test_many_namespaces_are_watched_at_once(control_plane: ControlPlane, jobs: Jobs, tmp_path: Path):
    with (
        new_namespace(jobs.cluster) as other,
        http_proxy_to(control_plane, tmp_path) as (proxy, environment),
        operator(jobs.cluster, tmp_path, [jobs.namespace, *ABSENT], environment=environment),
    ):
        Jobs(jobs.cluster, other).create(suspend=True)
        jobs.create(suspend=True)
        jobs.until(phase="Suspended")
        assert proxy.end_watches(_error(410)) == 3
        jobs.create("second", suspend=True)
        jobs.until("second", phase="Suspended")
        assert not [change for change in proxy.changes if f"/{other}/" in change]


def test_all_trainjobs_are_found_page_by_page(jobs: Jobs):
    names = {f"job-{number}" for number in range(5)}
    for name in names:
        jobs.create(name)
    found = asyncio.run(_keys(jobs, page=2))
    assert found == {(jobs.namespace, name) for name in names}


async def _keys(jobs: Jobs, page: int) -> set[tuple[str, str]]:
    configuration = Configuration()
    await config.load_kube_config(str(jobs.cluster.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as client:
        return await Api(client).keys(TRAIN_JOBS, [jobs.namespace], page)
