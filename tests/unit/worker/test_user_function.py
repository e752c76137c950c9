"""The function that a TrainJob names."""

import sys
from pathlib import Path

import pytest

from trainjob.api import Function
from trainjob.errors import UserError
from trainjob.worker.user_function import exit_error, find_function


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:train_loop", "there is no module 'no_such_module' in {folder}, and it is not installed"),
        ("loop_of_a_test:no_such_function", "{folder}/loop_of_a_test.py has no function 'no_such_function'"),
        ("loop_of_a_test:NUMBER", "{folder}/loop_of_a_test.py has no function 'NUMBER'"),
    ],
)
def test_a_function_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "loop_of_a_test", raising=False)
    (tmp_path / "loop_of_a_test.py").write_text("NUMBER = 1\n")
    with pytest.raises(UserError) as error:
        find_function(Function(name=name), tmp_path)
    assert str(error.value) == f"spec.model.function.name: {said.format(folder=tmp_path)}"


def test_an_import_that_fails_within_the_module_is_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_loop_of_a_test.py").write_text("import no_such_library\n")
    with pytest.raises(UserError, match=r"cannot be imported: ModuleNotFoundError: No module named 'no_such_library'"):
        find_function(Function(name="broken_loop_of_a_test:train_loop"), tmp_path)


def test_a_function_that_exits_is_told_by_its_line_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "exiting.py").write_text("import sys\n\ndef loop():\n    sys.exit(3)\n")
    with pytest.raises(SystemExit) as raised:
        find_function(Function(name="exiting:loop"), tmp_path)()
    error = exit_error(raised.value, 1, tmp_path)
    place = f"({tmp_path / 'exiting.py'}, line 4)"
    assert str(error) == f"worker 1 failed: SystemExit: the function called sys.exit(3) {place}"
    assert error.traceback == ""
