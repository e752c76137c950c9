"""The module of a function: where it is found, and the error if it cannot be imported."""

import sys
from pathlib import Path

import pytest

from trainjob.api import Function
from trainjob.errors import UserError
from trainjob.worker.user_function import find_function


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "import not_there_at_all",
            r"cannot be imported: ModuleNotFoundError: No module named 'not_there_at_all' .*line 1",
        ),
        ("x = 1\nfrom json import nothing", r"cannot be imported: ImportError: .*line 2\)"),
        ("def loop(:", "cannot be imported: SyntaxError: "),
        ("import sys\nsys.exit(3)", r"cannot be imported: SystemExit: 3 .*line 2\)"),
        ("x = 1", "has no function 'loop'"),
    ],
)
def test_what_is_wrong_with_a_module_is_said(
    content: str, said: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    module = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{module}.py").write_text(content)
    with pytest.raises(UserError, match=rf"spec\.model\.function\.name: .*{module}.*{said}"):
        find_function(Function(name=f"{module}:loop"), tmp_path)


def test_a_module_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no module 'nowhere\.deep' in .*, and it is not installed"):
        find_function(Function(name="nowhere.deep:loop"), tmp_path)


def test_the_standard_library_comes_before_the_folder_and_installed_modules_after(tmp_path: Path) -> None:
    (tmp_path / "own_beside.py").write_text("def loop(): pass")
    find_function(Function(name="own_beside:loop"), tmp_path)
    paths = [Path(path).name for path in sys.path]
    assert paths.index("lib-dynload") < paths.index(tmp_path.name) < paths.index("site-packages")
