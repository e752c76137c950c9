"""The report's section on the probabilities of predictions."""

from pathlib import Path

import numpy as np
import pytest

from report_runs import TEXT_JOB, Page, finish, predict, write_run
from trainjob.report.reliability import short_count
from trainjob.report.render import render
from trainjob.storage import Folder


@pytest.fixture
def run(tmp_path: Path) -> Folder:
    run = write_run(tmp_path, TEXT_JOB, [])
    finish(run, ["a", "b", "c"], np.eye(3, dtype=np.int64))
    return run


def test_the_bins_and_the_error(run: Folder) -> None:
    """60 rows at 0.95, of which 45 are right, and 40 at 0.42, of which 20 are right."""
    top = np.repeat([0.95, 0.42], [60, 40])
    probabilities = np.stack([top, (1 - top) * 0.6, (1 - top) * 0.4], axis=1)
    labels = np.repeat([0, 1, 0, 2], [45, 15, 20, 20])
    predict(run, ["a", "b", "c"], labels, probabilities)
    page = Page(render(run))
    assert page.tables["bins"] == [
        ["Probability", "Rows", "Mean probability", "Right", "95% interval"],
        ["40% to 50%", "40", "42.0%", "50.0%", "35.2% to 64.8%"],
        ["90% to 100%", "60", "95.0%", "75.0%", "62.8% to 84.2%"],
    ]
    # 0.6 * |0.95 - 0.75| + 0.4 * |0.42 - 0.5|
    assert "The expected calibration error (ECE) is 15.2%, over 10 bins of equal width." in page.text
    assert (
        "On 100 test rows, predictions have a probability of 73.8% on average, and 65.0% of them are right: "
        "the probabilities are too high." in page.text
    )
    assert "Right predictions: 50.0% at 42.0%; 75.0% at 95.0%." in page.attributes("aria-label")
    assert "Rows: 40 at 40% to 50%; 60 at 90% to 100%." in page.attributes("aria-label")


def test_a_single_row(run: Folder) -> None:
    predict(run, ["a", "b", "c"], np.array([0]), np.array([[1.0, 0.0, 0.0]]))
    page = Page(render(run))
    assert page.tables["bins"][1:] == [["90% to 100%", "1", "100.0%", "100.0%", "20.7% to 100.0%"]]
    assert "chance explains the difference" in page.text


def test_counts_are_short() -> None:
    assert [short_count(rows) for rows in (0, 9999, 10_000, 98_700, 9_870_000)] == ["0", "9,999", "10k", "99k", "9.9M"]
