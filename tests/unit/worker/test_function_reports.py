"""The reports of a function: which values are kept, and where."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cluster.jobs import eventually
from trainjob.api.numbers import not_finite
from trainjob.api.training_status import TrainingStatus
from trainjob.progress.channel import ProgressReceiver
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.history import last_metrics, read_history
from trainjob.storage import Folder
from trainjob.worker.function_reports import ReportCallback, missing_reports, numbers_of, with_python_scalars

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (True, 1),
        (0.5, 0.5),
        (-INFINITY, -INFINITY),
        (2**53 + 1, float(2**53)),
        (-(10**400), -INFINITY),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), 1),
        (np.array(3.0), 3.0),
        (Decimal("0.25"), 0.25),
    ],
)
def test_numbers_of_all_kinds(value: object, number: float):
    numbers, others = numbers_of({"a": value})
    assert (numbers, others) == ({"a": number}, [])
    assert type(numbers["a"]) is type(number)


def test_nan_is_a_number():
    numbers, _ = numbers_of({"loss": np.float64(NAN), "norm": INFINITY, "f1": 0.5})
    assert not_finite(numbers) == "loss is NaN, norm is Infinity"


def test_names_become_text_and_what_is_nested_one_name():
    report = {1: 2, "": 3, "test": {"f1": 0.5, "by class": {7: 0.25}}, "\ud800": 1}
    assert numbers_of(report) == ({"1": 2, "unnamed": 3, "test/f1": 0.5, "test/by class/7": 0.25, "?": 1}, [])


def test_what_is_no_number_is_named():
    report = {"note": "text", "list": [1, 2], "array": np.array([3.0]), "none": None, "test": {"note": "text"}, 1: 2j}
    assert numbers_of(report) == ({}, ["note", "list", "array", "none", "test/note", "1"])


def test_ray_train_gets_pythons_scalars():
    report = {"a": np.float32(0.5), "b": torch.tensor(7), "c": {"d": np.int64(1)}, "e": [1], "f": "text", 1: None}
    plain = with_python_scalars(report)
    assert plain == {"a": 0.5, "b": 7, "c": {"d": 1}, "e": [1], "f": "text", 1: None}
    assert [type(value) for value in (plain["a"], plain["b"], plain["c"]["d"])] == [float, int, int]


class Reporting:
    """A run whose driver listens while Ray Train's controller hears of reports."""

    def __init__(self, folder: Path) -> None:
        self.run = Folder(str(folder / "run"))
        self.run.write(ATTEMPTS, b"{}")
        self.statuses: list[TrainingStatus] = []
        self.lines: list[str] = []

    def reports(self, *reports: list[dict[Any, Any]]) -> None:
        """Each is a list of what the ranks report."""
        before = len(self.statuses)
        with ProgressReceiver(self.statuses.append, show=self.lines.append) as receiver:
            callback = ReportCallback(self.run, receiver.address)
            for report in reports:
                callback.after_report(None, report, None)
            eventually(lambda: len(self.statuses) == before + len(reports), 60)

    @property
    def last(self) -> dict[str, float]:
        """The run's last metrics, of which the status holds the same."""
        found = last_metrics(read_history(self.run))
        assert found == self.statuses[-1].metrics
        return found


def test_the_last_metrics_are_those_of_the_last_report(tmp_path: Path):
    reporting = Reporting(tmp_path)
    reporting.reports([{"epoch": 1, "loss": 0.5}], [{"epoch": 2, "loss": 0.25, "accuracy": 1}])
    assert reporting.last == {"epoch": 2, "loss": 0.25, "accuracy": 1}
    reporting.reports([{"epoch": 2, "loss": 0.125}])  # another attempt
    assert reporting.last == {"epoch": 2, "loss": 0.125}
    reporting.reports([{}, {"loss": 0.0625}, {"loss": 8}])
    assert reporting.last == {"loss": 0.0625}
    reporting.reports([{}, {}])
    assert reporting.last == {}
    assert [record["step"] for record in read_history(reporting.run)] == [1, 2, 3, 4, 5]


def test_what_is_not_finite_is_told_and_kept_as_valid_json(tmp_path: Path):
    reporting = Reporting(tmp_path)
    reporting.reports([{"loss": NAN, "norm": -INFINITY, "f1": 0.5}], [{"loss": 0.5}])
    assert [status.message for status in reporting.statuses] == ["loss is NaN, norm is -Infinity", ""]
    first, _ = read_history(reporting.run)
    assert repr((first["loss"], first["norm"], first["f1"])) == "(nan, -inf, 0.5)"

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    for line in reporting.run.read("metrics.jsonl").splitlines():
        json.loads(line, parse_constant=refuse)


def test_the_names_that_records_have_may_be_reported(tmp_path: Path):
    reporting = Reporting(tmp_path)
    reporting.reports([{"loss": 0.5, "step": -5, "kind": 2, "time": 7.5, "epoch": 10}])
    [record] = read_history(reporting.run)
    assert (record["kind"], record["step"], record["epoch"]) == ("epoch", 1, 10)
    assert reporting.last == {"kind": 2, "step": -5, "epoch": 10, "time": 7.5, "loss": 0.5}


@pytest.mark.parametrize(
    ("epoch", "kept", "told"), [(0, 0, 0), (10.0, 10, 10), (0.52, 0.52, 0), (NAN, 1, 1), (1e300, 1, 1), ("one", 1, 1)]
)
def test_a_reported_epoch(tmp_path: Path, epoch: Any, kept: float, told: int):
    reporting = Reporting(tmp_path)
    reporting.reports([{"loss": 0.5, "epoch": epoch}])
    [record] = read_history(reporting.run)
    assert (record["epoch"], reporting.statuses[-1].epoch) == (kept, told)


def test_what_is_not_kept_is_told_once(tmp_path: Path):
    reporting = Reporting(tmp_path)
    reporting.reports([{"note": "a", "loss": 1}], [{"note": "b"}], [{"list": [1]}])
    assert reporting.lines == [
        "note: the function reports values that are not numbers and are not kept: note",
        "note: the function reports values that are not numbers and are not kept: list",
    ]


def test_a_record_of_a_report_that_is_not_finite_is_found() -> None:
    reported: list[dict[str, int | float]] = [{"loss": NAN, "step": 7}]
    for kept in ({"loss": NAN}, {}):  # earlier versions left it out
        record = {**kept, "kind": "epoch", "step": 1, "epoch": 1}
        assert missing_reports(reported, [record | {"reported_step": 7}]) == []
        assert missing_reports(reported, [record | {"reported_step": 8}]) == reported


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
