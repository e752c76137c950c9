"""Kubernetes Events of TrainJobs."""

from pathlib import Path

from operator_process import operator

from cluster.client import Cluster
from cluster.jobs import Jobs


def test_no_event_is_lost_by_an_operator_that_is_stopped(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    names = [f"job-{number}" for number in range(30)]
    for name in names:
        jobs.create(name)
    with operator(cluster, tmp_path, [jobs.namespace]) as process:
        for name in names:
            jobs.until(name, phase="Pending")
        assert process.stop() == 0
    assert [reason for name in names for reason in jobs.events(name)] == ["Created"] * len(names)
