"""Which failures of the workers Ray Train tries again. Each counts in the run's folder, for later drivers to know."""

from contextlib import suppress

from ray.train import FailureConfig, WorkerGroupError
from ray.train.v2._internal.execution.failure_handling import DefaultFailurePolicy, FailureDecision
from ray.train.v2.api.exceptions import TrainingFailedError

from trainjob.api.training_status import TrainingStatus
from trainjob.errors import StorageError, may_pass
from trainjob.progress.channel import Address, Sender
from trainjob.runs.folder import count_failure
from trainjob.storage import Folder
from trainjob.training.outcome import first_failure, told


class CountingPolicy(DefaultFailurePolicy):
    """Ray Train's own policy, but a mistake of the user's ends training at once. Lives in Ray Train's controller."""

    def __init__(self, retries: int, run: Folder, driver: Address) -> None:
        super().__init__(FailureConfig(max_failures=retries))
        self._run, self._driver = run, driver

    def make_decision(self, training_failed_error: TrainingFailedError) -> FailureDecision:
        if not isinstance(training_failed_error, WorkerGroupError):
            return super().make_decision(training_failed_error)
        failures = training_failed_error.worker_failures
        if not all(map(may_pass, failures.values())):
            return FailureDecision.RAISE
        before = self._worker_group_failures
        decision = super().make_decision(training_failed_error)
        if decision is FailureDecision.RETRY and self._worker_group_failures > before:
            self._note(first_failure([told(*failure) for failure in failures.items()]))
        return decision

    def _note(self, failure: Exception) -> None:
        with suppress(StorageError):  # it then stays uncounted
            count_failure(self._run)
        sender = Sender(self._driver)
        sender.send(TrainingStatus(stage="Starting", message=f"{failure}; starting again"), always=True)
        sender.close()
