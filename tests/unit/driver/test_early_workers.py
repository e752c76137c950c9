"""Workers of this machine that are started before the driver's libraries are imported."""

from collections.abc import Generator

import psutil
import pytest

from environment import environment_kept
from trainjob.api import TrainJobSpec
from trainjob.driver.early_workers import early_workers

TEXTS = {"train": {"uri": "rows.csv"}, "text": ["text"], "label": "label"}
ENCODER = {"textClassifier": {"encoder": {}}}


@pytest.fixture(autouse=True)
def _environment() -> Generator[None]:
    with environment_kept():
        yield


def spec_of(**fields: object) -> TrainJobSpec:
    return TrainJobSpec.model_validate({"model": ENCODER, "dataset": TEXTS} | fields)


def servers() -> list[psutil.Process]:
    """The processes of this one's that workers are forked from."""
    children = psutil.Process().children()
    return [child for child in children if "trainjob.launch.fast.fork_server" in child.cmdline()]


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": TEXTS | {"loader": "rayData"}},
        {"model": {"function": {"name": "train:loop"}}, "dataset": None},
        {"tuning": {"parameters": {"training.epochs": {"choice": [1, 2]}}, "trials": 2}},
    ],
    ids=["loader", "function", "search"],
)
def test_workers_of_ray_are_not_started_here(fields: dict[str, object]):
    with early_workers(spec_of(**fields)) as workers:
        assert workers is None
        assert servers() == []


def test_workers_of_a_cluster_are_not_started_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with early_workers(spec_of()) as workers:
        assert workers is None


def test_workers_end_with_a_run_that_fails():
    early = early_workers(spec_of())
    workers = early.__enter__()
    assert workers is not None
    assert workers.folder.is_dir()
    assert len(servers()) == 1
    error = ValueError("no rows")
    assert not early.__exit__(ValueError, error, None)
    assert servers() == []
    assert not workers.folder.exists()


def test_workers_may_be_ended_before():
    with early_workers(spec_of()) as workers:
        assert workers is not None
        workers.close()
        assert servers() == []
