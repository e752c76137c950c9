"""The installed Ray has the private parts that `ray_internals` uses, and trainjob does without them on another one."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import ray
from ray._private import worker
from ray.train.torch import TorchTrainer
from ray.train.v2._internal import exceptions
from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy

from trainjob.training.launch.ray_internals import has_died, is_known, print_no_deaths, trainer_class

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Data's own

CHANGED = "Ray's private parts have changed: adapt trainjob/training/launch/ray_internals.py"


def train() -> None:
    pass


@pytest.fixture
def unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "__version__", "2.61.0")


def test_the_installed_version_is_known():
    assert is_known(), CHANGED


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
    print_no_deaths()
    worker.print_to_stdstream({"lines": ["a worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)


def test_a_worker_that_no_longer_answers_is_told_by_a_class_of_its_own():
    assert has_died(exceptions.WorkerHealthCheckFailedError("failed", Exception())), CHANGED
    assert not has_died(RuntimeError("failed"))


@pytest.mark.usefixtures("unknown_version")
def test_with_another_version_the_trainer_is_ray_trains_own(monkeypatch: pytest.MonkeyPatch):
    assert trainer_class(own_cluster=True, uses_ray_data=False) is TorchTrainer
    before = worker.print_to_stdstream
    print_no_deaths()
    assert worker.print_to_stdstream is before


def test_on_a_cluster_of_others_and_with_ray_data_the_trainer_is_ray_trains_own():
    assert trainer_class(own_cluster=False, uses_ray_data=False) is TorchTrainer
    assert trainer_class(own_cluster=True, uses_ray_data=True) is TorchTrainer
