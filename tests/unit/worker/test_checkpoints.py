"""A checkpoint counts only when it is whole."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainjob.api import Checkpoints
from trainjob.errors import StorageError, TransientError
from trainjob.runs.checkpoints import MANIFEST
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore


def _store(folder: Path, **spec: object) -> CheckpointStore:
    return CheckpointStore(Folder(str(folder)), Checkpoints.model_validate(spec))


def _save(store: CheckpointStore, epoch: int, step: int, loss: float | None) -> str:
    def write(folder: Path) -> None:
        (folder / "weights").write_text(f"{step}")

    return store.save(epoch, step, {} if loss is None else {"validation_loss": loss}, write)


def test_the_latest_is_restored(tmp_path: Path):
    store = _store(tmp_path, keep=5)
    _save(store, 1, 10, 0.5)
    latest = _save(store, 1, 15, None)
    assert store.latest() == latest
    assert (store / latest).read("weights") == b"15"


@pytest.mark.parametrize(
    ("earlier", "later"), [((1, 9), (2, 100)), ((9999, 9999), (10_000, 10_000)), ((1, 99_999_999), (1, 100_000_000))]
)
def test_steps_are_ordered_as_numbers(tmp_path: Path, earlier: tuple[int, int], later: tuple[int, int]):
    store = _store(tmp_path, keep=5)
    names = [_save(store, *steps, 0.5) for steps in (earlier, later)]
    assert store.names() == names
    assert store.latest() == names[1]


def test_other_folders_are_no_checkpoints(tmp_path: Path):
    store = _store(tmp_path)
    name = _save(store, 1, 10, 0.5)
    for other in ("notes", f"{name}.old", f"my-{name}"):
        (tmp_path / "checkpoints" / other).mkdir()
    assert store.names() == [name]


def test_the_manifest_says_what_a_checkpoint_holds(tmp_path: Path):
    store = _store(tmp_path)
    name = _save(store, 3, 21, 0.25)
    assert name == "epoch-0003-step-00000021"
    assert store.uri(name) == f"{tmp_path}/checkpoints/{name}"
    digest = "6f4b6612125fb3a0daecd2799dfd6c9c299424fd920f9b308110a2c1fbd8f443"  # of "21", by sha256sum
    manifest = {"epoch": 3, "step": 21, "metrics": {"validation_loss": 0.25}, "files": {"weights": digest}}
    text = (tmp_path / "checkpoints" / name / "checkpoint.json").read_text()
    assert text == json.dumps(manifest, indent=1)


class CutOff(Folder):
    """Loses its server before a tree is deleted."""

    def delete(self, name: str) -> None:
        if name != MANIFEST and self.exists(name):
            raise StorageError("the server is gone")
        super().delete(name)


def test_a_checkpoint_that_is_partly_deleted_counts_no_more(tmp_path: Path):
    store = CheckpointStore(CutOff(str(tmp_path)), Checkpoints(keep=1))
    worse = _save(store, 1, 10, 0.5)
    with pytest.raises(StorageError, match="the server is gone"):
        _save(store, 2, 20, 0.4)
    assert (tmp_path / "checkpoints" / worse / "weights").exists()
    assert [name for name, _ in _store(tmp_path).ranked()] == ["epoch-0002-step-00000020"]


def _truncate(folder: Path) -> None:
    (folder / "weights").write_text("")


def _flip(folder: Path) -> None:
    (folder / "weights").write_text("21")


def _lose_file(folder: Path) -> None:
    (folder / "weights").unlink()


def _lose_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def _tear_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes()[:40])


@pytest.mark.parametrize("damage", [_truncate, _flip, _lose_file, _lose_manifest, _tear_manifest])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: Callable[[Path], None]):
    store = _store(tmp_path, keep=5)
    sound = _save(store, 1, 10, 0.5)
    damage(tmp_path / "checkpoints" / _save(store, 2, 20, 0.4))
    assert store.latest() == sound


def test_there_may_be_none(tmp_path: Path):
    assert _store(tmp_path).latest() is None


def test_a_write_that_fails_leaves_no_checkpoint(tmp_path: Path):
    store = _store(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "weights").write_text("half")
        raise RuntimeError("out of disk")

    with pytest.raises(RuntimeError, match="out of disk"):
        store.save(1, 10, {}, fail)
    assert store.latest() is None


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"keep": 1}, [20, 40]),
        ({"keep": 2}, [20, 30, 40]),
        ({"keep": 1, "mode": "max"}, [10, 40]),
    ],
)
def test_the_best_and_the_latest_are_kept(tmp_path: Path, spec: dict[str, object], kept: list[int]):
    store = _store(tmp_path, **spec)
    for epoch, loss in enumerate([0.5, 0.1, 0.3, 0.4], start=1):
        _save(store, epoch, epoch * 10, loss)
    assert [int(name[-8:]) for name in store.names()] == kept


def test_a_checkpoint_inside_an_epoch_gives_way_to_the_next(tmp_path: Path):
    store = _store(tmp_path)
    _save(store, 1, 10, 0.5)
    for step in (12, 14, 16):
        _save(store, 1, step, None)
    assert [int(name[-8:]) for name in store.names()] == [10, 16]


def test_ranks_best_first_and_the_earlier_of_equals(tmp_path: Path):
    store = _store(tmp_path, keep=9)
    names = [_save(store, epoch, epoch * 10, loss) for epoch, loss in enumerate([0.5, 0.1, 0.1], start=1)]
    ranked = [(name, store.value(manifest)) for name, manifest in store.ranked()]
    assert ranked == [(names[1], 0.1), (names[2], 0.1), (names[0], 0.5)]


ENDS_WHILE_A_THREAD_SAVES = """
import atexit, sys, time
from pathlib import Path
from threading import Event, Thread

from trainjob.api import Checkpoints
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore

begun = Event()

def write(folder: Path) -> None:
    (folder / "weights").write_text("1")
    begun.set()
    time.sleep(1)  # meanwhile the process ends
    (folder / "state").write_text("1")

store = CheckpointStore(Folder(sys.argv[1]), Checkpoints())
thread = Thread(target=store.save, args=(1, 1, {}, write), daemon=True)
atexit.register(thread.join)  # the first to be registered is the last to be called
thread.start()
begun.wait()
"""


def test_later_checkpoints_are_left_alone(tmp_path: Path):
    """They are torn and will be replaced, or another process has gone on."""
    store = _store(tmp_path, keep=1)
    later = [_save(store, epoch, epoch * 10, loss) for epoch, loss in ((3, 0.1), (4, 0.9))]
    assert store.names() == [later[0], later[1]]
    own = _save(store, 2, 20, 0.2)
    assert store.names() == [own, *later]


@pytest.mark.parametrize("damage", [_truncate, _flip, _lose_file])
def test_the_best_is_the_best_that_is_whole(tmp_path: Path, damage: Callable[[Path], None]):
    store = _store(tmp_path, keep=5)
    names = [_save(store, epoch, epoch * 10, loss) for epoch, loss in enumerate([0.5, 0.1, 0.3], start=1)]
    damage(tmp_path / "checkpoints" / names[1])
    name, manifest = store.best()
    assert (name, manifest.step) == (names[2], 30)
    assert [store.is_intact(one) for one in names] == [True, False, True]


def test_files_are_on_the_disk_before_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A crash of the machine would leave a manifest of files that are cut off."""
    flushed, fsync = list[str](), os.fsync

    def watched(descriptor: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    _save(_store(tmp_path), 1, 10, 0.5)
    assert [name.partition(f".{os.getpid()}")[0] for name in flushed] == ["weights", f".{MANIFEST}"]


def test_there_may_be_no_best(tmp_path: Path):
    with pytest.raises(TransientError, match="no validated checkpoint is intact"):
        _store(tmp_path).best()


def test_a_process_that_ends_does_not_take_files_from_what_is_being_saved(tmp_path: Path):
    subprocess.run([sys.executable, "-c", ENDS_WHILE_A_THREAD_SAVES, str(tmp_path)], check=True, timeout=60)
    (name,) = _store(tmp_path).names()
    manifest = _store(tmp_path).manifest(name)
    assert manifest is not None
    assert manifest.files.keys() == {"weights", "state"}
