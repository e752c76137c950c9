"""Tests that every `Folder` passes, wherever its files are."""

import pickle
from pathlib import Path

import pytest

from trainjob.errors import StorageError
from trainjob.storage import Folder


class FolderContract:
    """Tests of the fixture `folder`, which a derived class has: an empty one at `run`."""

    def test_what_is_written_is_read(self, folder: Folder) -> None:
        assert not folder.exists("a/b.json")
        folder.write("a/b.json", b"one")
        folder.write("a/b.json", b"two")
        folder.write("a/c.bin", bytes(range(256)) * 50_000)

        assert folder.exists()
        assert folder.exists("a")
        assert folder.exists("a/b.json")
        assert folder.read("a/b.json") == b"two"
        assert folder.read("a/c.bin") == bytes(range(256)) * 50_000
        assert (folder / "a").read("b.json") == b"two"

    def test_list_names_children_in_order(self, folder: Folder) -> None:
        assert folder.list() == []
        for name in ("z", "checkpoints/two/model", "checkpoints/one/model", "a"):
            folder.write(name, b"x")
        assert folder.list() == ["a", "checkpoints", "z"]
        assert folder.list("checkpoints") == ["one", "two"]

    def test_trees_travel_whole(self, folder: Folder, tmp_path: Path) -> None:
        local = tmp_path / "local"
        (local / "deep" / "er").mkdir(parents=True)
        (local / "top.bin").write_bytes(b"top")
        (local / "deep" / "er" / "leaf").write_bytes(b"leaf")

        folder.upload(local, "tree")
        folder.upload(local / "top.bin", "file/top.bin")
        folder.download("tree", tmp_path / "back")
        folder.download("file/top.bin", tmp_path / "new" / "top.bin")

        assert (tmp_path / "back/top.bin").read_bytes() == b"top"
        assert (tmp_path / "back/deep/er/leaf").read_bytes() == b"leaf"
        assert (tmp_path / "new/top.bin").read_bytes() == b"top"

    def test_delete_takes_files_and_trees_and_minds_no_absence(self, folder: Folder) -> None:
        for name in ("keep", "gone", "tree/a/b"):
            folder.write(name, b"x")
        for name in ("gone", "tree", "never"):
            folder.delete(name)
        assert folder.list() == ["keep"]

    def test_a_folder_survives_pickling(self, folder: Folder) -> None:
        folder.write("name", b"x")
        assert pickle.loads(pickle.dumps(folder)).read("name") == b"x"

    def test_a_missing_file_is_named(self, folder: Folder) -> None:
        with pytest.raises(StorageError, match="run/absent"):
            folder.read("absent")
