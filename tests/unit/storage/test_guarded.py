"""A library that is given a run's filesystem changes nothing there once another driver has taken up the run."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import NativeFile, fs

from trainjob.errors import Superseded
from trainjob.runs.owner import Owner
from trainjob.storage import Folder, GuardedFileSystem

Guarded = tuple[fs.FileSystem, str]


def write(stream: NativeFile) -> None:
    with stream:
        stream.write(b"more")


def copy_tree(filesystem: fs.FileSystem, source: str, destination: str) -> None:
    """Copies files as Ray Train does to upload a checkpoint."""
    filesystem.create_dir(destination)
    fs.copy_files(source, destination, source_filesystem=fs.LocalFileSystem(), destination_filesystem=filesystem)


CHANGES: dict[str, Callable[[fs.FileSystem, str], object]] = {
    "write": lambda filesystem, run: write(filesystem.open_output_stream(f"{run}/name")),
    "append": lambda filesystem, run: write(filesystem.open_append_stream(f"{run}/name")),
    "make a folder": lambda filesystem, run: filesystem.create_dir(f"{run}/folder"),
    "delete": lambda filesystem, run: filesystem.delete_file(f"{run}/name"),
    "delete a folder": lambda filesystem, run: filesystem.delete_dir(f"{run}/checkpoint"),
    "empty a folder": lambda filesystem, run: filesystem.delete_dir_contents(f"{run}/checkpoint"),
    "empty all": lambda filesystem, run: filesystem.delete_dir_contents("/", accept_root_dir=True),
    "move": lambda filesystem, run: filesystem.move(f"{run}/name", f"{run}/other"),
    "copy": lambda filesystem, run: filesystem.copy_file(f"{run}/name", f"{run}/other"),
    "copy a tree": lambda filesystem, run: copy_tree(filesystem, f"{run}/checkpoint", f"{run}/other"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "run" / "checkpoint" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "name").write_bytes(b"whole")
    for number in range(20):  # more than are copied at once
        (tmp_path / "run" / "checkpoint" / "deep" / f"{number}").write_bytes(bytes(100 * number))
    return Folder(str(tmp_path / "run"))


@pytest.fixture
def guarded(folder: Folder) -> Guarded:
    """A driver's guarded filesystem, as a worker receives it."""
    owner = Owner(folder)
    owner.claim()
    return pickle.loads(pickle.dumps(GuardedFileSystem(owner.run))), folder.uri


def contents(folder: Folder) -> dict[str, bytes]:
    files = [path for path in Path(folder.uri).rglob("*") if ".claims" not in path.parts]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in files}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_who_was_replaced_changes_nothing(folder: Folder, guarded: Guarded, change: Callable[..., object]):
    before = contents(folder)
    Owner(folder).claim()
    with pytest.raises(Superseded, match="another process has taken over this run"):
        change(*guarded)
    assert contents(folder) == before


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "empty all"])
def test_who_was_not_replaced_may_change_it(folder: Folder, guarded: Guarded, name: str):
    before = contents(folder)
    CHANGES[name](*guarded)
    assert contents(folder) != before


def test_who_was_replaced_still_reads(folder: Folder, guarded: Guarded, tmp_path: Path):
    Owner(folder).claim()
    filesystem, path = guarded
    with filesystem.open_input_stream(f"{path}/name") as stream, filesystem.open_input_file(f"{path}/name") as file:
        assert stream.read() == file.read() == b"whole"
    names = {info.base_name for info in filesystem.get_file_info(fs.FileSelector(path))}
    assert names == {".claims", "checkpoint", "name"}
    copy, local = str(tmp_path / "copy"), fs.LocalFileSystem()
    fs.copy_files(f"{path}/checkpoint", copy, source_filesystem=filesystem, destination_filesystem=local)
    assert len(list((tmp_path / "copy" / "deep").iterdir())) == 20


def test_the_filesystems_of_driver_and_worker_are_equal(guarded: Guarded):
    """By this, Ray Train recognizes checkpoints that are already in the run's folder."""
    assert pickle.loads(pickle.dumps(guarded[0])) == guarded[0]
    assert guarded[0] != fs.LocalFileSystem()
