"""The function that a TrainJob names."""

import sys
from pathlib import Path

import pytest

from trainjob.api import Function
from trainjob.errors import UserError
from trainjob.training.function import find_function, missing_reports


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:train_loop", "there is no module 'no_such_module' in {folder}, nor is it installed"),
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


@pytest.mark.parametrize(
    ("records", "missing"),
    [
        ([1, 2, 3], []),
        ([1, 2], [3]),
        ([1, 3], [2]),
        ([], [1, 2, 3]),
    ],
)
def test_reports_without_a_record_are_found_though_only_their_epochs_differ(
    records: list[int], missing: list[int]
) -> None:
    reported = [{"epoch": float(epoch), "first": 1.0} for epoch in (1, 2, 3)]
    written = [{"kind": "epoch", "step": epoch, "epoch": epoch, "first": 1.0} for epoch in records]
    assert [values["epoch"] for values in missing_reports(reported, written)] == missing


def test_a_record_stands_for_one_of_several_equal_reports() -> None:
    reported = [{"loss": 0.5}, {"loss": 0.5}]
    assert missing_reports(reported, [{"kind": "epoch", "step": 1, "epoch": 1, "loss": 0.5}]) == [{"loss": 0.5}]
