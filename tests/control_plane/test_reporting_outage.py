"""The training process's reports while the API server is away."""

import threading
import time
from collections.abc import Generator

import pytest
from training_reports import at_step, training

from cluster.client import Cluster
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from trainjob.api.training_status import TrainingStatus
from trainjob.progress.status_writer import StatusReporter


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Generator[Cluster]:
    yield control_plane
    for name in ("kube-controller-manager", "kuberay-operator"):  # which would be slow to try again
        control_plane.restart(name)


def test_what_is_newest_is_written_afterwards_and_the_end_waits_for_it(
    control_plane: ControlPlane, jobs: Jobs, reporter: StatusReporter
):
    reporter.update(at_step(1))
    eventually(lambda: training(jobs).get("step") == 1)
    control_plane.kill("kube-apiserver")
    for step in range(2, 6):
        reporter.update(at_step(step))
        time.sleep(0.5)
    control_plane.start("kube-apiserver")
    eventually(lambda: training(jobs).get("step") == 5, seconds=60)

    control_plane.kill("kube-apiserver")
    reporter.update(TrainingStatus(stage="Finished", percent=100.0))
    closing = threading.Thread(target=reporter.close)
    closing.start()
    time.sleep(3)
    control_plane.start("kube-apiserver")  # in this thread, with whose end it would end
    closing.join()
    assert training(jobs)["stage"] == "Finished"
