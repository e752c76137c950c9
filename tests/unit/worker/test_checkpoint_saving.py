"""Checkpoints are saved while training goes on."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from torch import distributed

from ranks import run_on
from through_checkpoint import carry
from trainers import Setup, image_setup, train
from trainjob.api import Checkpoints
from trainjob.evaluation import Scores
from trainjob.models import build
from trainjob.storage import Folder
from trainjob.worker import checkpointing
from trainjob.worker.checkpointing import Checkpointer, CheckpointStore, TrainingState
from trainjob.worker.distributed import background_group, barrier, rank, world_size


def store(folder: Path) -> CheckpointStore:
    return CheckpointStore(Folder(str(folder)), Checkpoints())


class Saver(Checkpointer):
    """Saves what a function writes instead of a training's state."""

    def __init__(self, store: CheckpointStore, on_saved: Callable[[str, int, dict[str, float]], None]) -> None:
        nothing: Any = None
        super().__init__(store, on_saved, step=nothing, scheduler=None, preprocessor=nothing)
        self._write: Callable[[Path], None] = fill

    def begin(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> None:
        self._write = write
        self.save(TrainingState(epoch=epoch, step=step), metrics, None)

    def _copy(self, state: TrainingState, scores: Scores | None) -> Callable[[Path], None]:
        return self._write


def fill(folder: Path) -> None:
    (folder / "weights").write_text("1")


def fail(folder: Path) -> None:
    raise RuntimeError("out of disk")


def test_who_saves_need_not_wait(tmp_path: Path):
    may_write, seen = Event(), list[str]()

    def write(folder: Path) -> None:
        assert may_write.wait(30)
        fill(folder)

    with Saver(store(tmp_path), lambda name, step, metrics: seen.append(f"{name} {step} {metrics}")) as saver:
        saver.begin(1, 10, {"validation_loss": 0.5}, write)
        saver.poll()
        assert seen == store(tmp_path).names() == []
        may_write.set()
    assert seen == ["epoch-0001-step-00000010 10 {'validation_loss': 0.5}"]
    assert store(tmp_path).latest() == "epoch-0001-step-00000010"


def test_the_next_one_waits_for_the_one_before(tmp_path: Path):
    seen: list[int] = []
    with Saver(store(tmp_path), lambda name, step, metrics: seen.append(step)) as saver:
        for step in range(1, 6):
            saver.begin(1, step, {}, fill)
            assert seen == list(range(1, step))
    assert seen == [1, 2, 3, 4, 5]


def _saved_while_the_group_is_destroyed(folder: Path) -> tuple[int, int]:
    begun, may_go_on = Event(), Event()

    def write(local: Path) -> None:
        begun.set()
        assert may_go_on.wait(30)
        (local / f"weights-{rank()}").write_text("1")

    saver = Saver(CheckpointStore(Folder(str(folder)), Checkpoints(), background_group()), lambda *_: None)
    saver.begin(0, 5, {}, write)
    assert begun.wait(30)
    barrier()
    distributed.destroy_process_group()
    may_go_on.set()
    with pytest.raises(ValueError, match="group"):
        saver.wait()
    return rank(), world_size()


def test_a_rank_that_is_left_alone_completes_no_checkpoint(tmp_path: Path):
    """Ray Train destroys the process group when another worker is lost."""
    assert run_on(2, _saved_while_the_group_is_destroyed, tmp_path, new=True) == [(0, 2), (1, 2)]
    assert store(tmp_path).latest() is None


def test_what_went_wrong_is_told_at_the_next_call(tmp_path: Path):
    saver = Saver(store(tmp_path), lambda *_: None)
    saver.begin(1, 1, {}, fail)
    with pytest.raises(RuntimeError, match="out of disk"):
        saver.begin(1, 2, {}, fill)
    saver.begin(1, 3, {}, fail)
    with pytest.raises(RuntimeError, match="out of disk"), saver:
        pass
    saver.begin(1, 4, {}, fail)
    with pytest.raises(ValueError, match="first"), saver:
        raise ValueError("first")
    assert store(tmp_path).latest() is None


def _die_while_saving(setup: Setup) -> None:
    if rank() == 1:
        checkpointing.write_rank_tensors = lambda *_: os._exit(9)  # type: ignore[assignment]
    train(setup)


def test_a_rank_that_dies_while_it_saves_costs_that_checkpoint_alone(tmp_path: Path):
    training = {"epochs": 3, "optimizer": {"adamW": {"learningRate": 0.01}}}
    setup = image_setup(tmp_path / "killed", training=training, checkpoints={"keep": 9})
    whole = run_on(2, train, setup.elsewhere(tmp_path / "whole"))
    run_on(2, train, setup, 6)
    with pytest.raises(AssertionError, match="rank 1 of 2 failed: the process ended with exit code 9"):
        run_on(2, _die_while_saving, setup)
    torn = "epoch-0002-step-00000010"
    assert (setup.store.latest(), setup.store.manifest(torn)) == ("epoch-0001-step-00000005", None)
    resumed = run_on(2, train, setup)
    assert resumed[0].resumed == "epoch-0001-step-00000005"
    for name, weights in whole[0].weights.items():
        np.testing.assert_array_equal(resumed[0].weights[name], weights)


def test_weights_of_another_type_are_not_read_as_others(tmp_path: Path):
    setup = image_setup(tmp_path)
    saved, other = (build(setup.spec.model, setup.preprocessor) for _ in range(2))
    with pytest.raises(RuntimeError, match="the checkpoint belongs to another model: "):
        carry(saved.bfloat16(), other, tmp_path)


def test_a_checkpoint_of_an_earlier_version_is_refused_in_words(tmp_path: Path):
    setup = image_setup(tmp_path)
    setup.store.save(1, 5, {}, fill)
    assert run_on(1, _refused, setup) == ["told"]


def _refused(setup: Setup) -> str:
    with pytest.raises(checkpointing.UserError, match=r"of an earlier version of trainjob: finish .* with --fresh"):
        train(setup)
    return "told"


def _run_out_of_disk(setup: Setup) -> None:
    if rank() == 1:
        checkpointing.write_rank_tensors = _full  # type: ignore[assignment]
    train(setup)


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_is_told_in_words(tmp_path: Path):
    """The run ends with it, and goes on from the checkpoint before once there is room."""
    setup = image_setup(tmp_path / "run", training={"epochs": 3}, checkpoints={"keep": 9})
    run_on(2, train, setup, 6)
    with pytest.raises(AssertionError, match="rank 1 of 2 failed: ") as failed:
        run_on(2, _run_out_of_disk, setup)
    of_rank_1 = str(failed.value).partition("rank 1 of 2 failed: ")[2].partition("\nrank 0 of 2 ")[0]
    assert re.fullmatch(r"trainjob\.errors\.StorageError: /\S+: the disk is full \(.*\)", of_rank_1.split("\n")[-2])
    assert setup.store.manifest("epoch-0002-step-00000010") is None
    assert run_on(2, train, setup)[0].resumed == "epoch-0001-step-00000005"
