"""Code as an archive."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from trainjob.code.archive import pack, unpack
from trainjob.errors import UserError


def folder_of(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def names_in(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        return members.getnames()


def test_a_folder_comes_back_as_it_was(tmp_path: Path):
    folder = folder_of(tmp_path / "a", train_py="x = 1\n", package__inner_py="y = 2\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link.py").symlink_to("train.py")
    (folder / "package" / "up").symlink_to("..")
    unpack(pack(folder), tmp_path / "b", "it")
    found = tmp_path / "b"
    assert (found / "package" / "inner.py").read_text() == "y = 2\n"
    assert os.access(found / "run.sh", os.X_OK)
    assert not os.access(found / "train.py", os.X_OK)
    assert (found / "link.py").read_text() == "x = 1\n"
    assert (found / "package" / "up" / "train.py").read_text() == "x = 1\n"


def test_an_archive_made_by_tar_is_unpacked(tmp_path: Path):
    """The names in such an archive begin with `./`."""
    folder = folder_of(tmp_path / "a", train_py="x = 1\n", package__inner_py="y = 2\n")
    (folder / "link.py").symlink_to("package/inner.py")
    subprocess.run(["tar", "czf", tmp_path / "a.tar.gz", "-C", folder, "."], check=True)
    unpack((tmp_path / "a.tar.gz").read_bytes(), tmp_path / "b", "it")
    assert (tmp_path / "b" / "link.py").read_text() == "y = 2\n"
    assert (tmp_path / "b" / "train.py").read_text() == "x = 1\n"


def test_a_relative_path_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder_of(tmp_path / "code", train_py="x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert names_in(pack(Path("code"))) == ["train.py"]


def test_equal_files_make_equal_archives(tmp_path: Path):
    one, other = (folder_of(tmp_path / name, train_py="x = 1\n", b_py="") for name in "ab")
    os.utime(other / "train.py", (1, 1))
    assert pack(one) == pack(other)
    (other / "train.py").write_text("x = 2\n")
    assert pack(one) != pack(other)


@pytest.mark.parametrize("in_repository", [False, True])
def test_what_git_ignores_stays_here(tmp_path: Path, in_repository: bool):
    (tmp_path / ".gitignore").write_text("*.bin\n")
    folder = folder_of(tmp_path / "code", train_py="", data__rows="1", deep__skip="")
    (folder / ".gitignore").write_text("data/\n")
    (folder / "deep" / ".gitignore").write_text("skip\n")
    (folder / "model.bin").write_text("")
    if in_repository:  # whose root excludes model.bin
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
    kept = ["model.bin"] if not in_repository else []
    assert names_in(pack(folder)) == [".gitignore", "deep/.gitignore", *kept, "train.py"]


def test_files_of_a_nested_repository_are_packed(tmp_path: Path):
    folder = folder_of(tmp_path, train_py="", lib__tools_py="")
    subprocess.run(["git", "init", "-q", folder / "lib"], check=True)
    assert names_in(pack(folder)) == ["lib/tools.py", "train.py"]


@pytest.mark.parametrize(
    "name", [".env", "deep/id_rsa", "key.pem", "my-service-account-1.json", ".netrc", "settings.py"]
)
def test_secrets_are_refused_by_name_or_content(tmp_path: Path, name: str):
    folder_of(tmp_path, train_py="")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (tmp_path / ".env.example").write_text("TOKEN=\n")
    with pytest.raises(UserError, match="look like secrets: ") as error:
        pack(tmp_path)
    assert name in str(error.value)
    assert "example" not in str(error.value)


def test_a_large_folder_is_refused_with_its_largest_files(tmp_path: Path):
    folder_of(tmp_path, train_py="")
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(UserError, match=r"65 MiB of files, and at most 64 .* the largest are model\.safetensors"):
        pack(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="has no files to submit"):
        pack(tmp_path)


def link(name: str, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


@pytest.mark.parametrize(
    "members",
    [
        [tarfile.TarInfo("../outside.py")],
        [tarfile.TarInfo("/outside.py")],
        [link("outside", "../somewhere")],
        [link("outside", "/etc")],
        [link("outside", "here/.."), link("here", ".")],
    ],
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member)
    with pytest.raises(UserError, match=r"spec\.code is refused: .*outside"):
        unpack(content.getvalue(), tmp_path / "target", "spec.code")
    assert not (tmp_path / "outside.py").exists()


def test_a_link_out_of_the_folder_is_not_packed(tmp_path: Path):
    (folder_of(tmp_path / "code", train_py="") / "data").symlink_to(tmp_path)
    with pytest.raises(UserError, match="has links that lead out of it: data"):
        pack(tmp_path / "code")


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes):
    with pytest.raises(UserError, match=r"spec\.code cannot be unpacked as \.tar\.gz"):
        unpack(content, tmp_path / "target", "spec.code")


def test_a_cut_archive_is_refused(tmp_path: Path):
    folder_of(tmp_path / "a", train_py="x" * 10_000)
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack(pack(tmp_path / "a")[:-20], tmp_path / "b", "it")
