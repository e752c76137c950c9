"""All uses of Ray's private parts, each with its reason.

With another version of Ray than `VERSION` nothing here is used: runs then start later and print more, and are otherwise
the same. tests/unit/launch/test_ray_internals.py checks that the installed version has them.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ray.train import Result
    from ray.train.torch import TorchTrainer
    from ray.train.v2._internal.execution.callback import RayTrainCallback
    from ray.train.v2._internal.execution.context import TrainRunContext
    from ray.train.v2._internal.execution.scaling_policy import (
        ElasticScalingPolicy,
        ScalingDecision,
        ScalingPolicy,
    )

VERSION = "2.60."

POLL_SECONDS = 0.5
"""How often the nodes are listed while there are too few."""
SECONDS_TO_SAVE = 120.0
"""How long workers may take to save a checkpoint before more workers are started in their place."""


def is_supported_version() -> bool:
    import ray

    return ray.__version__.startswith(VERSION)


def is_announced() -> bool:
    """Whether Ray Train has announced to this worker that the workers will be restarted. The public
    `get_preemption_info` returns the same, but makes all workers wait for each other at every call."""
    if not is_supported_version():
        return False
    from ray.train.v2._internal.execution.context import get_train_context

    return get_train_context().preemption_context.preemption_info is not None


UNNEEDED_STARTS = ("start_api_server", "start_monitor", "start_log_monitor")
"""Methods of Ray's `Node` that start a process each."""


@contextmanager
def without_unneeded_processes() -> Generator[None]:
    """Within the block, `ray.init` starts a cluster without three processes, of 185 MB, that a run on one machine does
    not need: the API server, the autoscaler's monitor, and the one that prints the workers' output in the driver. The
    public settings leave out only parts of them."""
    if not is_supported_version():
        yield
        return
    from ray._private.node import Node

    methods = {name: getattr(Node, name) for name in UNNEEDED_STARTS}
    for name in methods:
        setattr(Node, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name, method in methods.items():
            setattr(Node, name, method)


def trainer_class(own_cluster: bool, uses_ray_data: bool, elastic: bool, has_api_server: bool) -> "type[TorchTrainer]":
    """Ray Train's trainer with a more patient cleaner; without one if the cluster has no API server, which the cleaner
    would ask. In a cluster of the run's own, it also has another scaling policy: `elastic` workers follow the nodes at
    once; others, without Ray Data, start without waiting for a process that reserves resources for them."""
    from ray.train.torch import TorchTrainer

    if not is_supported_version():
        return TorchTrainer
    has_policy = own_cluster and (elastic or not uses_ray_data)

    class PatientTrainer(TorchTrainer):  # pyrefly: ignore[invalid-inheritance]
        def _initialize_and_run_controller(self, **arguments: Any) -> "Result":
            if has_policy:
                policy = elastic_policy() if elastic else _fixed_policy()
                arguments |= {"scaling_policy": policy(self.scaling_config)}
            return super()._initialize_and_run_controller(**arguments)

        def _create_default_callbacks(self) -> "list[RayTrainCallback]":
            from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback

            callbacks = super()._create_default_callbacks()
            return [
                _cleaner() if isinstance(each, PlacementGroupCleanerCallback) else each
                for each in callbacks
                if has_api_server or not isinstance(each, PlacementGroupCleanerCallback)
            ]

    return PatientTrainer


def _cleaner() -> "RayTrainCallback":
    """A more patient placement-group cleaner.

    Ray Train's cleaner is a process that removes the workers' placement group, and so ends the workers, once the
    controller has died. It also does so whenever Ray's API server does not know the controller, which happens on a busy
    machine; this one waits until the server reports the controller as dead. When the whole job has died, Ray itself
    removes the group. At the end of a run, Ray Train waits up to 12 s for its cleaner if the server does not answer;
    this one has no state to lose and ends at once."""
    from ray.train.v2._internal.callbacks import placement_group_callback
    from ray.train.v2._internal.execution.controller import placement_group_cleaner

    class Cleaner(placement_group_cleaner.PlacementGroupCleaner):
        def start_monitoring(self) -> Literal[True]:
            placement_group_cleaner.is_actor_alive = may_be_alive
            return super().start_monitoring()

        def stop(self) -> None:
            self._exit()

    class Callback(placement_group_callback.PlacementGroupCleanerCallback):
        def after_controller_start(self, train_run_context: "TrainRunContext") -> None:
            placement_group_callback.PlacementGroupCleaner = Cleaner  # the controller's process has none but this run's
            super().after_controller_start(train_run_context)

    return Callback()


def may_be_alive(actor_id: str, timeout: int) -> bool:
    """Whether Ray does not report the actor as dead."""
    from ray.util.state import get_actor

    state = get_actor(actor_id, timeout=timeout)
    return state is None or state.state != "DEAD"


def _fixed_policy() -> "type[ScalingPolicy]":
    from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy

    class NoReservation(FixedScalingPolicy):
        """Ray Train's own policy, without its requests to Ray's autoscaler and Ray Data."""

        def _send_resource_request(self) -> None:
            pass

        def _maybe_send_resource_request(self) -> None:
            pass

        def _cancel_resource_request(self) -> None:
            pass

    return NoReservation


def elastic_policy() -> "type[ElasticScalingPolicy]":
    import ray
    from ray.train.v2._internal.execution.scaling_policy import ElasticScalingPolicy, NoopDecision, ResizeDecision
    from ray.train.v2.api.preemption import PreemptionInfo

    class FollowsNodes(ElasticScalingPolicy):
        """Ray Train's own policy with two changes: it lists the nodes itself, instead of asking a process that lists
        them every 20 s, and it lets the workers save a checkpoint before more workers take their place."""

        def _get_reserved_resources(self) -> "dict[str, dict[str, float]]":
            return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}

        def make_decision_for_non_running_worker_group(self) -> "ScalingDecision":
            decision = super().make_decision_for_non_running_worker_group()
            if isinstance(decision, NoopDecision):
                time.sleep(POLL_SECONDS)  # or the controller would ask without a pause
            return decision

        def make_decision_for_running_worker_group(
            self, worker_group_state: Any, worker_group_status: Any
        ) -> "ScalingDecision":
            decision = super().make_decision_for_running_worker_group(worker_group_state, worker_group_status)
            if isinstance(decision, ResizeDecision) and decision.num_workers > worker_group_state.num_workers:
                info = PreemptionInfo(int(1000 * (time.time() + SECONDS_TO_SAVE)), {})
                for worker in worker_group_state.workers:
                    worker.actor.mark_preempt.remote(info)
            return NoopDecision()

    return FollowsNodes


def silence_worker_deaths() -> None:
    """Keeps Ray from printing on standard output, over the progress display, that a worker died: `log_to_driver` does
    not prevent it. The driver reports it itself."""
    if is_supported_version():
        from ray._private import worker

        worker.print_to_stdstream = lambda *_, **__: None


def sends_tokens() -> bool:
    """Whether Ray in this process authenticates itself: it reads RAY_AUTH_MODE once, when it is imported."""
    if not is_supported_version():
        return True
    from ray._raylet import AuthenticationMode, get_authentication_mode  # pyrefly: ignore[missing-module-attribute]

    return get_authentication_mode() == AuthenticationMode.TOKEN


def has_died(error: BaseException) -> bool:
    """Whether this is Ray Train's error for a worker that no longer answers. Its class is not public."""
    return type(error).__name__ == "WorkerHealthCheckFailedError"
