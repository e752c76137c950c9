"""Code from a Git server."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_servers import git_server
from trainjob.api.code import GIT_PASSWORD, GIT_USERNAME, Git
from trainjob.code.git import fetch
from trainjob.errors import TransientError, UserError, is_transient


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`project.git` with two commits: the branch main and, before it, the tag v1."""
    root = tmp_path_factory.mktemp("git")
    project = root / "project.git"

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=project, check=True, capture_output=True, text=True
        ).stdout.strip()

    project.mkdir()
    git("init", "-q", "-b", "main")
    (project / "src").mkdir()
    for version in (1, 2):
        (project / "src" / "train.py").write_text(f"VERSION = {version}\n")
        git("add", ".")
        git("commit", "-q", "-m", f"version {version}")
        if version == 1:
            git("tag", "-a", "v1", "-m", "first")
    git("config", "uploadpack.allowReachableSHA1InWant", "true")
    return root


@pytest.fixture(scope="module")
def url(repositories: Path) -> Iterator[str]:
    with git_server(repositories) as server:
        yield f"{server}/project.git"


def read(archive: bytes, name: str) -> str:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        file = members.extractfile(name)
        assert file is not None
        return file.read().decode()


def commit_of(repositories: Path, ref: str) -> str:
    command = ["git", "rev-parse", f"{ref}^{{commit}}"]
    return subprocess.run(
        command, cwd=repositories / "project.git", check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize(("ref", "version"), [("HEAD", 2), ("main", 2), ("v1", 1)])
def test_a_branch_or_tag(repositories: Path, url: str, ref: str, version: int):
    archive, commit = fetch(Git(url=url, ref=ref))
    assert read(archive, "src/train.py") == f"VERSION = {version}\n"
    assert commit == commit_of(repositories, ref)


def test_a_commit_and_a_folder_in_it(repositories: Path, url: str):
    first = commit_of(repositories, "v1")
    archive, commit = fetch(Git(url=url, ref=first, path="src"))
    assert (read(archive, "train.py"), commit) == ("VERSION = 1\n", first)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"ref": "no-such-branch"},
            r"spec\.code\.git\.ref: the repository has no such branch, tag or full commit hash",
        ),
        ({"ref": "0" * 39 + "1"}, r"spec\.code\.git\.ref: the repository has no such"),
        ({"path": "no/such"}, r"spec\.code\.git\.path: the commit has no such folder"),
        ({"url": "other.git"}, r"spec\.code\.git\.url: there is no such repository"),
    ],
)
def test_a_mistake_is_named_by_its_field(url: str, changes: dict[str, str], said: str):
    changed = {name: f"{url.rpartition('/')[0]}/{value}" if name == "url" else value for name, value in changes.items()}
    with pytest.raises(UserError, match=said) as error:
        fetch(Git(**{"url": url, **changed}))
    assert not is_transient(error.value)


def test_a_server_that_is_away_may_come_back():
    with pytest.raises(TransientError, match=r"spec\.code\.git\.url: the server does not answer"):
        fetch(Git(url="http://127.0.0.1:9/project.git"))


def test_a_repository_with_a_password(repositories: Path, monkeypatch: pytest.MonkeyPatch):
    with git_server(repositories, login="me:opensesame") as server:
        source = Git(url=f"{server}/project.git")
        with pytest.raises(UserError, match="access is refused: check the user and the token"):
            fetch(source)
        monkeypatch.setenv(GIT_USERNAME, "me")
        monkeypatch.setenv(GIT_PASSWORD, "wrong-word")
        with pytest.raises(UserError, match="access is refused") as error:
            fetch(source)
        assert "wrong-word" not in str(error.value)
        monkeypatch.setenv(GIT_PASSWORD, "opensesame")
        assert read(fetch(source)[0], "src/train.py") == "VERSION = 2\n"
