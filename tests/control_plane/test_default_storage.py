"""A TrainJob without a storage of its own: the one that README shows."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from operator_process import SETTINGS, OperatorProcess, operator

from cluster.client import KubectlError
from cluster.jobs import Jobs
from pages import trainjob_of

JOB = "project-tags"


def _operator(jobs: Jobs, folder: Path, **defaults: Any) -> AbstractContextManager[OperatorProcess]:
    return operator(jobs.cluster, folder, [jobs.namespace], settings={**SETTINGS, "defaults": defaults})


def _stored(jobs: Jobs) -> Any:
    """The storage in the TrainJob that the driver reads."""
    head = jobs.ray_job(JOB)["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    return yaml.safe_load(head["metadata"]["annotations"]["trainjob.dev/trainjob"])["spec"]["storage"]


def test_readmes_trainjob_waits_for_a_storage(jobs: Jobs, tmp_path: Path):
    with _operator(jobs, tmp_path):
        jobs.kubectl("apply", "--filename=-", stdin=trainjob_of("README.md", "s3://datasets/projects.csv"))
        status = jobs.until(JOB, phase="Pending", reason="NoStorage")
    assert "defaults.storage" in status["message"]
    [accepted] = [each for each in status["conditions"] if each["type"] == "Accepted"]
    assert (accepted["reason"], accepted["status"]) == ("NoStorage", "False")
    assert jobs.get("rayjobs", JOB) is None
    own = {"uri": f"s3://runs/{jobs.namespace}", "secretName": "s3"}
    with _operator(jobs, tmp_path, storage={"uri": "s3://runs", "secretName": "s3"}):
        assert _stored(jobs) == own
        assert jobs.until(JOB, reason="PodsStarting")["storage"] == own


def test_it_is_refused_until_its_data_can_be_reached(jobs: Jobs):
    with pytest.raises(KubectlError, match=r"spec\.dataset\.train\.uri: .* must start with a scheme, such as s3://"):
        jobs.kubectl("apply", "--filename=-", stdin=trainjob_of("README.md", "projects.csv"))
