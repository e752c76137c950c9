"""Several drivers believe that they own a run: only the last one to start writes; here on a local disk, and in
tests/training/test_s3_folders.py on S3."""

import pickle
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from ownership import OwnershipContract
from trainjob.errors import StorageError, Superseded, UserError
from trainjob.runs import owner
from trainjob.runs.owner import Owner, claim_for_workers, held_by_workers
from trainjob.storage import Folder


class TestOnDisk(OwnershipContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Folder:
        return Folder(str(tmp_path / "run"))


def test_workers_write_in_the_name_of_their_driver(tmp_path: Path):
    first, second = Owner(Folder(str(tmp_path))), Owner(Folder(str(tmp_path)))
    first.claim()
    worker = pickle.loads(pickle.dumps(first.run))
    worker.write("name", b"x")
    second.claim()
    with pytest.raises(UserError, match="another process has taken over this run"):
        worker.write("name", b"y")


def test_a_listing_that_is_older_than_their_claim_does_not_end_workers(tmp_path: Path):
    run = Folder(str(tmp_path))
    (run / ".launches").write("00000001-ffffffff", b"")
    claim = claim_for_workers(run)
    (run / ".launches").delete(claim)
    (run / ".launches").write("00000001-ffffffff", b"")
    held_by_workers(run, claim).write("name", b"x")


def test_of_two_that_claim_at_once_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both drivers see the same turn."""
    folder, owners = Folder(str(tmp_path)), [Owner(Folder(str(tmp_path))) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(owner, "_claims", lambda run, kind: [])
        patch.setattr(Owner, "check", lambda self, run: None)
        for each in owners:
            each.claim()
    last = max(folder.list(".claims"))
    for each in owners:
        with nullcontext() if each._claim == last else pytest.raises(Superseded):  # noqa: SLF001
            each.run.write("name", b"x")
    assert folder.exists("name")


def test_a_folder_that_was_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainjob.runs.folder.POLL_SECONDS", 0.0)
    own = Owner(Folder(str(tmp_path / "run")))
    own.claim()
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(UserError, match="was removed during the run"):
        own.run.write("name", b"x")
    assert not (tmp_path / "run").exists()


def test_before_the_claim_nothing_is_refused(tmp_path: Path):
    Owner(Folder(str(tmp_path))).run.write("name", b"x")


def test_what_a_replaced_process_fails_of_is_that_it_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainjob.runs.folder.POLL_SECONDS", 0.0)
    first, second = Owner(Folder(str(tmp_path / "run"))), Owner(Folder(str(tmp_path / "run")))
    missing = StorageError("its checkpoint is gone")
    assert first.cause_of(missing) is missing  # nothing is claimed yet
    first.claim()
    assert first.cause_of(missing) is missing
    second.claim()
    assert isinstance(first.cause_of(missing), Superseded)
    assert second.cause_of(missing) is missing
    shutil.rmtree(tmp_path / "run")
    assert second.cause_of(missing) is missing
