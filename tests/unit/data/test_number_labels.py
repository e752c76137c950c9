"""The first pass reads labels of any type: here numbers, by a reader and a target that only this test has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_specs import write_csv

from trainjob.api import Dataset
from trainjob.data.first_pass.profile import set_profile
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import Division, ScannedRows, ScanPlan, Survey, nothing, take_survey
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import one_by_one
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.data.read.source import parts
from trainjob.errors import DataError, RowError

STRATA = 4


@dataclass(frozen=True)
class Number:
    edges: list[float]
    mean: float = 0.0
    least_together: int = 1

    def strata(self, labels: Any, rows: int) -> np.ndarray:
        return np.searchsorted(self.edges, labels, side="right")

    def completed(self, labels: np.ndarray) -> "Number":
        return Number(self.edges, float(labels.mean()))

    def label_bytes(self, labels: Any, rows: int) -> bytes:
        return labels.tobytes()


@dataclass(frozen=True)
class NumberLabels:
    column: str

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        usable, labels = list[int](), list[float]()
        for index, cell in enumerate(rows.table[self.column].to_pylist()):
            try:
                labels.append(float(cell))
                usable.append(index)
            except ValueError:
                where = rows.where(index)
                on_bad(RowError(f'{where}: "{cell}" is not a number', where, "the label is not a number", f'"{cell}"'))
        return rows.take(np.array(usable, np.int64)), np.array(labels, np.float64)

    def merge(self, later: Any) -> Any:
        return lambda labels: labels

    def fit(self, survey: Survey[Any], dataset: Dataset, bad: BadRows) -> tuple[Survey[Any], Any]:
        assert survey.labels is not None
        if survey.labels.min() == survey.labels.max():
            raise DataError("every label is the same number")
        return survey, Number(np.quantile(survey.labels, np.arange(1, STRATA) / STRATA).tolist())


def scan(rows: Rows) -> ScannedRows[None]:
    return ScannedRows(hashes([text.encode() for text in rows.table["text"].to_pylist()], 0), nothing)


def survey_of(files: list[Path], bad: BadRows) -> tuple[Survey[None], Division, str]:
    dataset = Dataset.model_validate({"train": {"uris": [str(file) for file in files]}, "text": ["text"], "label": "y"})
    plan = ScanPlan(["text", "y"], NumberLabels("y"), scan)
    survey, target = take_survey(dataset, parts(dataset.train, None), plan, one_by_one, bad)
    return survey, survey.divide(target, 0.25, 0), survey.digest(target)


def rows_with(labels: list[Any]) -> list[dict[str, Any]]:
    return [{"text": f"row {number}", "y": label} for number, label in enumerate(labels)]


def test_numbers_are_read_split_by_quantile_and_counted(tmp_path: Path) -> None:
    rows = rows_with([number**2 / 8 for number in range(80)])
    odd = [{"text": "row 7", "y": 7**2 / 8}, {"text": "row 9", "y": -1.5}, {"text": "x", "y": "many"}]
    bad = BadRows()
    survey, division, digest = survey_of([write_csv(tmp_path / "rows.csv", [*rows, *odd])], bad)
    assert survey.labels is not None
    assert survey.labels[:80].tolist() == [row["y"] for row in rows]
    assert list(bad.mistakes) == ["the label is not a number"]
    (first,) = bad.mistakes["the label is not a number"].first
    assert first.text == f'{tmp_path}/rows.csv, row 83: "many"'
    strata = division.target.strata(survey.labels, 82)
    assert set(np.bincount(strata[~division.is_training], minlength=STRATA)) <= {5, 6}
    profile = set_profile(division.keys, None)
    assert (profile.rows, profile.duplicates, profile.contradictions) == (82, 1, 2)
    assert digest == survey_of([tmp_path / "rows.csv"], BadRows())[2]
    target: Any = division.target
    assert target.mean == pytest.approx(survey.labels[division.is_training].mean())


def test_the_result_does_not_depend_on_the_files(tmp_path: Path) -> None:
    rows = rows_with([number / 4 for number in range(60)])
    one, _, digest = survey_of([write_csv(tmp_path / "all.csv", rows)], BadRows())
    files = [write_csv(tmp_path / f"{start}.csv", rows[start : start + 20]) for start in (0, 20, 40)]
    several, _, other_digest = survey_of(files, BadRows())
    assert np.array_equal(np.asarray(one.labels), np.asarray(several.labels))
    assert digest == other_digest


def test_a_constant_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="every label is the same number"):
        survey_of([write_csv(tmp_path / "rows.csv", rows_with([2] * 9))], BadRows())
