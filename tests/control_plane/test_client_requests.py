"""What the client of the commands makes of the API server's answers, and of its silence."""

import os
import signal
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, document, eventually
from trainjob.cluster import client as cluster_client
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.kubeconfig import connect

CLIENTS = 8
CODE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"a": "b"}}


@pytest.fixture
def client(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> ClusterClient:
    monkeypatch.setenv("KUBECONFIG", str(jobs.cluster.kubeconfig))
    return ClusterClient(connect(namespace=jobs.namespace))


def test_of_submissions_at_once_one_has_created_the_job(client: ClusterClient):
    barrier = threading.Barrier(CLIENTS)

    def submit(_: int) -> str:
        barrier.wait()
        return client.apply(document("job")).outcome

    with ThreadPoolExecutor(CLIENTS) as threads:
        outcomes = Counter(threads.map(submit, range(CLIENTS)))
    assert outcomes == {"created": 1, "unchanged": CLIENTS - 1}


def test_what_another_has_created_in_the_meantime_is_not_said_to_be_created(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch
):
    """It is applied by somebody else just after this client has looked."""
    request, apply = client.connection.request, client.connection.apply
    monkeypatch.setattr(cluster_client.Connection, "apply", lambda _, *given: (apply(*given), apply(*given))[1])
    assert request("GET", cluster_client.TRAIN_JOBS, client.namespace)["items"] == []
    assert client.apply(document("job")).outcome == "unchanged"
    assert client.apply(document("job", retries=3)).outcome == "configured"
    assert client.apply(CODE).outcome == "configured"


def test_the_user_is_told_of_an_api_server_that_hangs(
    client: ClusterClient, jobs: Jobs, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
):
    """Its connections stay open. Before, watches end and go on without a word."""
    monkeypatch.setattr(cluster_client, "WATCH_SECONDS", 1)
    monkeypatch.setattr(cluster_client, "_GRACE_SECONDS", 1.0)
    jobs.create()
    seen: list[str] = []

    def follow() -> None:
        for job in client.follow(client.job("job")):
            seen.append(job.status.message or "")
            if job.has_ended:
                return

    thread = threading.Thread(target=follow)
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        thread.start()
        eventually(lambda: seen)
        time.sleep(2.5)
        jobs.report("trainjobs", "job", {"phase": "Running", "message": "after two watches"})
        eventually(lambda: seen[-1] == "after two watches")
        assert not notices
        pid = control_plane.components["kube-apiserver"].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            eventually(lambda: notices)
        finally:
            os.kill(pid, signal.SIGCONT)
        jobs.report("trainjobs", "job", {"phase": "Succeeded", "message": "the end"})
        thread.join(60)
    assert "has been silent for 2 s; trying again" in str(notices[0].message)
    assert seen[-1] == "the end"
