"""A run is copied whole or in parts, goes on after an interruption, and is checked by its digests."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trainjob.errors import StorageError, TransientError, UserError
from trainjob.runs import pull as pulling
from trainjob.runs.digests import digests_of
from trainjob.runs.lock import file_lock
from trainjob.runs.pull import PARTIAL, PULLED_FROM, Pulled, pull
from trainjob.storage import Folder

FILES = {
    "trainjob.yaml": b"kind: TrainJob\n",
    "attempts.json": b"{}",
    "summary.json": b"{}",
    "report.html": b"<html>",
    "metrics.jsonl": b"{}\n",
    "logs/attempt-1/rank-0.log": b"loss\n",
    ".claims/00000001-00000000": b"",
    ".lock": b"",
    "checkpoints/epoch-0001-step-00000010/state/00000.bin": os.urandom(300),
}
MODEL = {"config.json": b"{}", "model.safetensors": os.urandom(1000), "preprocessor.json": b"{}"}


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "tags"
    write(folder, FILES)
    write(folder / "model", MODEL)
    (folder / "model" / "digests.json").write_text(json.dumps(digests_of(folder / "model")))
    checkpoint = folder / "checkpoints" / "epoch-0001-step-00000010"
    manifest = {"epoch": 1, "step": 10, "metrics": {}, "files": digests_of(checkpoint)}
    (checkpoint / "checkpoint.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "pulled"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The files that are read, with the position of each block of 100 bytes."""
    read: list[tuple[str, int]] = []
    actual = Folder.read_range

    def read_range(folder: Folder, name: str, start: int, size: int) -> bytearray:
        read.append((name, start))
        return actual(folder, name, start, size)

    monkeypatch.setattr(Folder, "read_range", read_range)
    monkeypatch.setattr(pulling, "BLOCK_BYTES", 100)
    return read


def copy(run: Path, target: Path, part: pulling.RunFiles = "all") -> Pulled:
    return pull(Folder(str(run)), target, part, lambda *_: None)


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def pulled_files(target: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(target).items() if name not in (".lock", PULLED_FROM)}


def test_all_files_are_copied_but_for_those_of_processes(run: Path, target: Path):
    seen: list[tuple[int, int]] = []
    pull(Folder(str(run)), target, "all", lambda done, total: seen.append((done, total)))
    expected = {name: data for name, data in contents(run).items() if not name.startswith((".claims", ".lock"))}
    assert pulled_files(target) == expected
    size = sum(map(len, expected.values()))
    assert (seen[0], max(seen)) == ((0, size), (size, size))


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("report", {"report.html"}),
        (
            "model",
            {f"model/{name}" for name in (*MODEL, "digests.json")} | {"trainjob.yaml", "attempts.json", "summary.json"},
        ),
    ],
)
def test_a_part_is_copied(run: Path, target: Path, part: pulling.RunFiles, names: set[str]):
    assert copy(run, target, part).files == len(names)
    assert set(pulled_files(target)) == names
    more = copy(run, target)
    assert (more.files - more.copied, pulled_files(target).keys() > names) == (len(names), True)


def test_a_models_own_folder_is_copied(run: Path, target: Path):
    copy(run / "model", target, "model")
    assert pulled_files(target) == contents(run / "model")


def test_only_what_has_changed_is_copied_again(run: Path, target: Path, reads: list[tuple[str, int]]):
    copy(run, target)
    reads.clear()
    assert copy(run, target).copied == 0
    (target / "model" / "model.safetensors").write_bytes(bytes(1000))  # the same size, but not the file of the run
    (run / "metrics.jsonl").write_bytes(b"{}\n{}\n")
    assert copy(run, target).copied == 2
    assert {name for name, _ in reads} == {"model/model.safetensors", "metrics.jsonl"}
    assert pulled_files(target)["model/model.safetensors"] == MODEL["model.safetensors"]


def test_a_copy_that_was_cut_off_goes_on(
    run: Path, target: Path, reads: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
):
    actual = Folder.read_range

    def cut(folder: Folder, name: str, start: int, size: int) -> bytearray:
        if name.endswith("safetensors") and start >= 500:
            raise StorageError("cut off")
        return actual(folder, name, start, size)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "read_range", cut)
        with pytest.raises(StorageError, match="cut off"):
            copy(run, target, "model")
    assert "model/model.safetensors" not in contents(target)
    assert "model/config.json" not in contents(target)  # without it the folder is no model's
    reads.clear()
    copy(run, target, "model")
    assert [start for name, start in reads if name == "model/model.safetensors"] == [500, 600, 700, 800, 900]
    assert pulled_files(target)["model/model.safetensors"] == MODEL["model.safetensors"]
    assert not (target / PARTIAL).exists()


def test_an_incomplete_file_with_other_bytes_is_read_anew(run: Path, target: Path, reads: list[tuple[str, int]]):
    copy(run, target, "report")
    digest = json.loads((run / "model" / "digests.json").read_text())["model.safetensors"]
    name = hashlib.sha256(f"model/model.safetensors {digest}".encode()).hexdigest()
    write(target / PARTIAL, {name: bytes(2000)})
    copy(run, target, "model")
    assert pulled_files(target)["model/model.safetensors"] == MODEL["model.safetensors"]


def test_a_damaged_file_is_not_kept(run: Path, target: Path):
    (run / "model" / "model.safetensors").write_bytes(bytes(1000))
    with pytest.raises(StorageError, match=r"model/model.safetensors does not match the SHA-256"):
        copy(run, target, "model")
    assert "model/model.safetensors" not in contents(target)
    (run / "model" / "model.safetensors").unlink()
    with pytest.raises(StorageError, match=r"model/model.safetensors is missing, so the model is incomplete"):
        copy(run, target, "model")


def test_other_files_of_the_user_stay(run: Path, target: Path, tmp_path: Path):
    write(target, {"trainjob.yaml": b"mine"})
    with pytest.raises(UserError, match="is not empty, and no run was pulled into it"):
        copy(run, target)
    assert contents(target) == {"trainjob.yaml": b"mine"}
    with pytest.raises(UserError, match="is a file: give a folder"):
        copy(run, target / "trainjob.yaml")
    copy(run, tmp_path / "one")
    run.rename(run.parent / "other")
    with pytest.raises(UserError, match=f"holds another run, {run}"):
        copy(run.parent / "other", tmp_path / "one")


def test_two_pulls_into_one_folder(run: Path, target: Path):
    with file_lock(target), pytest.raises(TransientError, match="another process is running it or copying it"):
        copy(run, target)
    copy(run, target)


def remove(*names: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        for name in names:
            (run / name).unlink()

    return change


@pytest.mark.parametrize(
    ("change", "part", "message"),
    [
        (remove("report.html"), "report", "has no report yet"),
        (remove("model/config.json"), "model", "has no trainjob model.*--what all"),
        (remove("model/config.json", "summary.json"), "model", "this run has not finished"),
        (remove("trainjob.yaml", "model/config.json"), "all", "is not a run's folder"),
        (remove("trainjob.yaml", "report.html"), "report", "is not a run's folder"),
    ],
)
def test_a_run_without_the_part(
    run: Path, target: Path, change: Callable[[Path], None], part: pulling.RunFiles, message: str
):
    change(run)
    with pytest.raises(UserError, match=message):
        copy(run, target, part)
    assert not target.exists()
