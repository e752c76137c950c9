"""All that trainjob uses of Ray's private parts, each with its reason.

With another version of Ray than `VERSION` none of it is used: runs then start later and print more, and are otherwise
the same. tests/unit/training/launch/test_ray_internals.py shows that the installed version has what is used here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.train import Result
    from ray.train.torch import TorchTrainer

VERSION = "2.60."


def is_known() -> bool:
    import ray

    return ray.__version__.startswith(VERSION)


def trainer_class(own_cluster: bool, uses_ray_data: bool) -> "type[TorchTrainer]":
    """Ray Train's trainer; in a cluster of the run's own, without Ray Data, one that starts no process to reserve room
    for the workers, for which their start would wait."""
    from ray.train.torch import TorchTrainer

    if not own_cluster or uses_ray_data or not is_known():
        return TorchTrainer

    from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy

    class NoReservation(FixedScalingPolicy):
        """Ray Train's own policy, but it asks Ray's autoscaler, and Ray Data, for nothing."""

        def _send_resource_request(self) -> None:
            pass

        def _maybe_send_resource_request(self) -> None:
            pass

        def _cancel_resource_request(self) -> None:
            pass

    class Trainer(TorchTrainer):
        def _initialize_and_run_controller(self, **arguments: Any) -> "Result":
            return super()._initialize_and_run_controller(
                **arguments | {"scaling_policy": NoReservation(self.scaling_config)}
            )

    return Trainer


def print_no_deaths() -> None:
    """Has Ray not print on standard output, over the progress display, that a worker died: `log_to_driver` does not
    prevent it. The driver says so in its own words."""
    if is_known():
        from ray._private import worker

        worker.print_to_stdstream = lambda *_, **__: None


def has_died(error: BaseException) -> bool:
    """Whether this is how Ray Train tells that a worker no longer answers: its class is not public."""
    return type(error).__name__ == "WorkerHealthCheckFailedError"
