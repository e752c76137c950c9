"""The installed Ray has the private parts that `ray_internals` uses, and trainjob does without them on another one."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import ray
from ray._private import worker
from ray._private.node import Node
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer
from ray.train.v2._internal import exceptions
from ray.train.v2._internal.callbacks import placement_group_callback
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2._internal.execution.controller import placement_group_cleaner
from ray.train.v2._internal.execution.scaling_policy import (
    ElasticScalingPolicy,
    FixedScalingPolicy,
    NoopDecision,
    ResizeDecision,
    ScalingPolicy,
)
from ray.train.v2.api.preemption import PreemptionInfo

from trainjob.api.cluster import WORKER_RESOURCE
from trainjob.launch.fast.ray_internals import (
    UNNEEDED_STARTS,
    elastic_policy,
    has_died,
    is_announced,
    is_supported_version,
    may_be_alive,
    silence_worker_deaths,
    trainer_class,
    without_unneeded_processes,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Data's own

CHANGED = "Ray's private parts have changed: adapt trainjob/launch/fast/ray_internals.py"


def train() -> None:
    pass


@pytest.fixture
def unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "__version__", "2.61.0")


def test_the_installed_version_is_known():
    assert is_supported_version(), CHANGED


def test_ray_train_takes_a_scaling_policy():
    source = inspect.getsource(TorchTrainer.fit)
    assert "_initialize_and_run_controller(" in source, CHANGED
    assert "scaling_policy=" in source, CHANGED


@pytest.mark.parametrize("name", ["send_resource_request", "maybe_send_resource_request", "cancel_resource_request"])
def test_a_fixed_policy_asks_for_room_by_methods_of_its_own(name: str):
    assert inspect.signature(getattr(FixedScalingPolicy, f"_{name}")).parameters.keys() == {"self"}, CHANGED


def test_ray_prints_deaths_by_a_function_that_can_be_replaced(monkeypatch: pytest.MonkeyPatch):
    source: Callable[..., Any] = worker.listen_error_messages
    assert "print_to_stdstream(" in inspect.getsource(source), CHANGED
    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)  # put back at the end
    silence_worker_deaths()
    worker.print_to_stdstream({"lines": ["a worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)


def test_a_worker_that_no_longer_answers_is_told_by_a_class_of_its_own():
    assert has_died(exceptions.WorkerHealthCheckFailedError("failed", Exception())), CHANGED
    assert not has_died(RuntimeError("failed"))


@pytest.mark.usefixtures("unknown_version")
def test_with_another_version_the_trainer_is_ray_trains_own(monkeypatch: pytest.MonkeyPatch):
    assert trainer_class(own_cluster=True, uses_ray_data=False, elastic=False, has_api_server=False) is TorchTrainer
    assert trainer_class(own_cluster=True, uses_ray_data=False, elastic=True, has_api_server=True) is TorchTrainer
    with without_unneeded_processes():
        assert Node.start_monitor.__module__ == Node.__module__
    assert not is_announced()
    before = worker.print_to_stdstream
    silence_worker_deaths()
    assert worker.print_to_stdstream is before


@pytest.mark.parametrize(
    ("own_cluster", "uses_ray_data", "elastic", "policy"),
    [
        (False, False, False, None),
        (False, False, True, None),
        (True, True, False, None),
        (True, False, False, "NoReservation"),
        (True, True, True, "FollowsNodes"),
    ],
)
def test_on_a_cluster_of_others_and_with_ray_data_the_policy_is_ray_trains_own(
    monkeypatch: pytest.MonkeyPatch, own_cluster: bool, uses_ray_data: bool, elastic: bool, policy: str | None
):
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        TorchTrainer, "_initialize_and_run_controller", lambda self, **arguments: given.update(arguments)
    )
    trainer = _trainer(own_cluster, uses_ray_data, elastic)
    trainer._initialize_and_run_controller(scaling_policy=None)  # noqa: SLF001
    assert (given["scaling_policy"] and type(given["scaling_policy"]).__name__) == policy


def _trainer(own_cluster: bool, uses_ray_data: bool, elastic: bool, has_api_server: bool = True) -> Any:
    chosen: Any = trainer_class(own_cluster, uses_ray_data, elastic, has_api_server)
    return chosen(train, scaling_config=ScalingConfig(num_workers=2))


def test_a_controller_that_ray_knows_nothing_of_may_be_alive(monkeypatch: pytest.MonkeyPatch):
    """Ray Train's own cleaner would end its workers."""
    states = {"dead": SimpleNamespace(state="DEAD"), "alive": SimpleNamespace(state="ALIVE"), "unknown": None}
    monkeypatch.setattr("ray.util.state.get_actor", lambda actor, timeout: states[actor])
    assert {actor: may_be_alive(actor, 1) for actor in states} == {"dead": False, "alive": True, "unknown": True}


def test_a_trainers_cleaner_is_the_patient_one():
    trainer = _trainer(own_cluster=False, uses_ray_data=False, elastic=False)
    callbacks = trainer._create_default_callbacks()  # noqa: SLF001
    [callback] = [each for each in callbacks if isinstance(each, PlacementGroupCleanerCallback)]
    assert type(callback) is not PlacementGroupCleanerCallback, CHANGED
    parameters = inspect.signature(PlacementGroupCleanerCallback.after_controller_start).parameters
    assert list(parameters) == ["self", "train_run_context"], CHANGED
    assert "PlacementGroupCleaner)" in inspect.getsource(placement_group_callback), CHANGED
    assert "self._cleaner.stop.remote()" in inspect.getsource(PlacementGroupCleanerCallback), CHANGED
    assert "_exit" in vars(placement_group_cleaner.PlacementGroupCleaner), CHANGED
    assert "is_actor_alive(" in inspect.getsource(placement_group_cleaner.PlacementGroupCleaner), CHANGED
    assert list(inspect.signature(placement_group_cleaner.is_actor_alive).parameters) == ["actor_id", "timeout"], (
        CHANGED
    )


def test_a_cluster_without_an_api_server_has_no_cleaner():
    trainer = _trainer(own_cluster=True, uses_ray_data=True, elastic=False, has_api_server=False)
    callbacks = trainer._create_default_callbacks()  # noqa: SLF001
    assert callbacks
    assert not any(isinstance(each, PlacementGroupCleanerCallback) for each in callbacks)


def test_ray_starts_its_processes_by_methods_that_can_be_replaced():
    source = inspect.getsource(Node.start_head_processes) + inspect.getsource(Node.start_ray_processes)
    own = {name: getattr(Node, name) for name in UNNEEDED_STARTS}
    assert all(f"        self.{name}(" in source for name in own), CHANGED
    with without_unneeded_processes():
        assert all(getattr(Node, name) is not method for name, method in own.items())
    assert all(getattr(Node, name) is method for name, method in own.items())


def test_an_elastic_policy_looks_at_nodes_by_a_method_of_its_own():
    source = inspect.getsource(ElasticScalingPolicy)
    assert source.count("self._get_reserved_resources()") == 2, CHANGED
    assert "def make_decision_for_non_running_worker_group(self)" in source, CHANGED


@dataclass
class _Worker:
    """The part of a worker that a policy uses: its actor, which can be notified."""

    told: list[PreemptionInfo] = field(default_factory=list)

    @property
    def actor(self) -> Any:
        return SimpleNamespace(mark_preempt=SimpleNamespace(remote=self.told.append))


NODE = {"CPU": 2.0, WORKER_RESOURCE: 2.0}


@pytest.mark.parametrize(
    ("nodes", "size"),
    [([NODE], None), ([NODE, NODE], 4), ([NODE, {"CPU": 8.0}, NODE, NODE], 5)],
    ids=["too few", "fewer", "enough"],
)
def test_as_many_workers_start_as_the_nodes_that_are_there_have_places(nodes: list[dict[str, float]], size: int | None):
    decision = _policy(nodes).make_decision_for_non_running_worker_group()
    assert isinstance(decision, ResizeDecision if size else NoopDecision)
    assert getattr(decision, "num_workers", None) == size


@pytest.mark.parametrize(("running", "told"), [(3, True), (4, False), (5, False)])
def test_workers_are_told_once_there_is_room_for_more(running: int, told: bool):
    workers = [_Worker() for _ in range(running)]
    state: Any = SimpleNamespace(start_time=0.0, num_workers=running, workers=workers)
    decision = _policy([NODE, NODE]).make_decision_for_running_worker_group(state, cast("Any", None))
    assert isinstance(decision, NoopDecision)
    assert [len(worker.told) for worker in workers] == [int(told)] * running


def _policy(nodes: list[dict[str, float]]) -> ScalingPolicy:
    """One of an elastic job of 3 to 5 workers, on these nodes."""

    class OnNodes(elastic_policy()):  # pyrefly: ignore[invalid-inheritance]
        def _get_reserved_resources(self) -> dict[str, dict[str, float]]:
            return {str(number): node for number, node in enumerate(nodes)}

        def _maybe_send_resource_request(self) -> None:
            pass

    worker = {"CPU": 1.0, WORKER_RESOURCE: 1.0}
    return OnNodes(ScalingConfig(num_workers=(3, 5), resources_per_worker=worker))
