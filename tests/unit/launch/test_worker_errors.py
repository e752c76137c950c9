"""Which of several workers' errors is reported."""

from trainjob.errors import UserError
from trainjob.launch.worker_errors import WorkerError, first_failure

DEATH = WorkerError.died(1, "was killed by signal 9", "")
EARLY = WorkerError(0, "RuntimeError", "connectFullMesh failed: Connection closed by peer", "", time=0.0)
LATER = WorkerError(2, "RuntimeError", "[/gloo/transport] Connection reset", "", time=8.0)


def test_a_death_comes_before_the_connections_that_it_closed() -> None:
    assert first_failure([EARLY, LATER, DEATH]) is DEATH
    assert first_failure([LATER, EARLY]) is EARLY


def test_a_mistake_of_the_users_comes_before_a_death() -> None:
    mistake = UserError("the column is missing")
    assert first_failure([DEATH, EARLY, mistake]) is mistake
