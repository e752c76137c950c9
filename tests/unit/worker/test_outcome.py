"""The error for a worker that ended without an exception."""

import pytest
from ray.exceptions import RayActorError
from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError

from trainjob.launch.worker_errors import worker_error


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            "2 worker(s) were killed due to the node running low on memory. Memory on the node was 22.33GB used",
            "Ray ended its process because memory was running out: give it more",
        ),
        ("The actor died unexpectedly before finishing this task.", "its process ended unexpectedly; perhaps"),
    ],
)
def test_a_worker_that_died(cause: str, said: str):
    error = WorkerHealthCheckFailedError("A worker health check failed.", RayActorError(error_msg=cause))
    assert str(worker_error(3, error)).startswith(f"worker 3 failed: WorkerDied: {said}")
