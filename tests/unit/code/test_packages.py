"""A function's packages, resolved and installed by uv from an index of the test's own."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from code_servers import package_index, write_wheel
from trainjob.code.packages import install, lock
from trainjob.errors import TransientError, UserError


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an index with the packages `tiny` and `needy`, which needs tiny and NumPy."""
    folder = tmp_path / "index"
    write_wheel(folder / "simple" / "needy", "needy", "import tiny", requires=["tiny", "numpy"])
    write_wheel(folder / "simple" / "numpy", "numpy", "")  # version 1.0, which is not the installed one
    with package_index(folder, {"tiny": "NUMBER = 7"}) as url:
        monkeypatch.setenv("UV_INDEX_URL", url)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        yield folder / "simple"


def imported(folder: Path, statement: str) -> str:
    script = f"import sys; sys.path.append({str(folder)!r}); {statement}"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def test_packages_are_locked_with_digests_and_installed(index: Path, tmp_path: Path):
    locked = lock(["tiny>=0.5"])
    digest = hashlib.sha256((index / "tiny" / "tiny-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert locked.decode().split() == ["tiny==1.0", "\\", f"--hash=sha256:{digest}"]
    folder = install(locked, tmp_path / "installed")
    assert imported(folder, "import tiny; print(tiny.NUMBER)") == "7"
    assert install(locked, tmp_path / "installed") == folder


def test_installed_packages_keep_their_version(index: Path):
    with pytest.raises(UserError, match=rf"needy.* numpy=={version('numpy')}|numpy=={version('numpy')}"):
        lock(["needy"])  # whose NumPy this index has in another version alone


@pytest.mark.parametrize("wanted", ["no-such-package-here", "tiny>=2", "tiny ==", "numpy<2"])
def test_a_package_that_cannot_be_had_is_named(index: Path, wanted: str):
    with pytest.raises(UserError, match=r"spec\.requirements cannot be installed:") as error:
        lock([wanted])
    assert wanted.split("=")[0].split(">")[0].split("<")[0].strip() in str(error.value)
    assert not isinstance(error.value, TransientError)


def test_a_package_that_has_changed_since_it_was_locked_is_refused(index: Path, tmp_path: Path):
    locked = lock(["tiny"])
    write_wheel(index / "tiny", "tiny", "NUMBER = 8")
    with pytest.raises(UserError, match=r"[Hh]ash mismatch"):
        install(locked, tmp_path / "installed")
    write_wheel(index / "tiny", "tiny", "NUMBER = 7")
    assert imported(install(locked, tmp_path / "installed"), "import tiny; print(tiny.NUMBER)") == "7"


def test_an_index_that_is_away_may_come_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    with pytest.raises(TransientError, match="the package index does not answer"):
        lock(["tiny"])
