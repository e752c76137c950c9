"""Tests of a run's folder that two drivers write to, wherever its files are."""

import pickle
import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from soak import SOAK
from trainjob.api import Checkpoints
from trainjob.errors import StorageError, Superseded, TransientError
from trainjob.runs.owner import Owner, claim_for_workers, held_by_workers
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore


def save(store: CheckpointStore, step: int, weights: str, loss: float = 0.5) -> str:
    def write(folder: Path) -> None:
        (folder / "weights").write_text(weights)

    return store.save(step, step, {"validation_loss": loss}, write)


def read(store: CheckpointStore, name: str) -> str:
    assert store.is_intact(name)
    return (store / name).read("weights").decode()


def _of_workers(run: Folder) -> Folder:
    return held_by_workers(run, claim_for_workers(run))


class OwnershipContract:
    """Tests of the fixture `folder`, which a derived class has: an empty one at `run`."""

    def test_who_is_superseded_changes_nothing(self, folder: Folder) -> None:
        old, new = Owner(folder), Owner(folder)
        old.claim()
        before = CheckpointStore(old.run, Checkpoints(keep=1))
        save(before, 10, "old")
        new.claim()
        after = CheckpointStore(new.run, Checkpoints(keep=1))
        (best, latest) = save(after, 20, "new", loss=0.1), save(after, 30, "new")
        for step in (20, 25):
            with pytest.raises(Superseded, match="run: another process has taken over this run"):
                save(before, step, "old", loss=0.0)
        for name in ("summary.json", "attempts.json"):
            with pytest.raises(Superseded):
                old.run.write(name, b"old")
        with pytest.raises(Superseded):
            old.run.delete("checkpoints")
        with pytest.raises(Superseded):
            (old.run / "logs").upload(Path(__file__), "rank-0.log")
        assert after.names() == [best, latest]
        assert [read(after, name) for name in (best, latest)] == ["new", "new"]
        assert set(folder.list()) == {".claims", "checkpoints"}

    def test_who_comes_after_goes_on(self, folder: Folder) -> None:
        for turn in range(1, 4):
            owner = Owner(folder)
            owner.claim()
            owner.run.write("turn", b"%d" % turn)
            (claim,) = folder.list(".claims")
            assert claim.startswith(f"{turn:08d}-")

    @pytest.mark.parametrize("seed", range(20 if SOAK else 2))
    def test_of_many_that_start_one_after_the_other_the_last_goes_on(self, folder: Folder, seed: int) -> None:
        """Each saves until another has come, at moments of its own; whatever is read then is whole."""
        chance = random.Random(seed)

        def drive(name: str, pauses: list[float]) -> None:
            owner = Owner(folder)
            store = CheckpointStore(owner.run, Checkpoints(keep=3))
            with suppress(Superseded, StorageError):  # on disks, where a lock keeps drivers apart, files vanish
                owner.claim()
                for step, pause in enumerate(pauses, start=1):
                    save(store, step, name)
                    time.sleep(pause)
                owner.run.write("summary.json", name.encode())

        threads: list[threading.Thread] = []
        for number in range(6):
            pauses = [chance.uniform(0, 0.1) for _ in range(10)]
            threads.append(threading.Thread(target=drive, args=(f"driver-{number}", pauses)))
            threads[-1].start()
            time.sleep(chance.uniform(0, 0.3))
        for thread in threads:
            thread.join(60)
        drive("last", [0.0] * 12)
        assert folder.read("summary.json") == b"last"
        store = CheckpointStore(folder, Checkpoints(keep=3))
        latest, _ = store.names()[-1], store.best()
        assert read(store, latest) == "last"

    def test_workers_in_whose_place_others_were_started_change_nothing(self, folder: Folder) -> None:
        """The driver goes on, and a new driver ends both."""
        driver = Owner(folder)
        driver.claim()
        old, new = (pickle.loads(pickle.dumps(_of_workers(driver.run))) for _ in range(2))
        before, after = (CheckpointStore(run, Checkpoints(keep=1)) for run in (old, new))
        for step in (10, 20):
            with pytest.raises(TransientError, match="run: other workers have been started in the place of these"):
                save(before, step, "old")
            save(after, step, "new")
        with pytest.raises(TransientError):
            old.write("metrics.jsonl", b"old")
        driver.run.write("summary.json", b"driver")
        assert [read(after, name) for name in after.names()] == ["new", "new"]
        Owner(folder).claim()
        with pytest.raises(Superseded):
            new.write("metrics.jsonl", b"new")

    def test_trials_of_a_search_have_workers_of_their_own(self, folder: Folder) -> None:
        driver = Owner(folder)
        driver.claim()
        for run in [_of_workers(driver.run / "trials" / str(number)) for number in range(2)]:
            run.write("metrics.jsonl", b"")

    def test_a_claim_that_came_too_late_ends_its_process(self, folder: Folder) -> None:
        """Another one has counted itself after it meanwhile."""
        folder.write(".claims/00000007-00000000", b"")
        owner = Owner(folder)
        owner.claim()
        folder.write(".claims/00000008-ffffffff", b"")
        with pytest.raises(Superseded):
            owner.run.write("name", b"x")
        assert not folder.exists("name")
