"""Permutation importance of the columns of a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from baseline_runs import write_run
from pyarrow import csv
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import permutation_importance
from sklearn.metrics import f1_score

from predictor_runs import save_untrained
from trainjob.baselines import importance
from trainjob.baselines.compare import compare_with_baselines
from trainjob.data import Fitted
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.comparison import read_comparison
from trainjob.runs.folder import read_job
from trainjob.storage import Folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A run on numbers, one of them with missing cells, a date and a category."""
    found: Any = load_breast_cancer()
    folder, random = tmp_path_factory.mktemp("tumors"), np.random.default_rng(0)
    days = np.datetime64("2026-01-01") + random.integers(0, 300, len(found.target))
    table = pa.table(
        {
            "radius": pa.array([None if index % 7 == 0 else value for index, value in enumerate(found.data[:, 0])]),
            "day": pa.array(days.astype(str)),
            "shape": pa.array(np.array(["round", "long", "flat"])[found.data[:, 0].astype(int) % 3]),
            "texture": found.data[:, 1],
            "label": pa.array(np.array(["malignant", "benign"])[found.target]),
        }
    )
    csv.write_csv(table.slice(0, 400), folder / "train.csv")
    csv.write_csv(table.slice(400), folder / "test.csv")
    job, run = write_run(folder, "table", folder)
    save_untrained(job, Fitted.load(run / "fitted"), Path(run.uri) / "model")
    return run


def test_it_is_that_of_scikit_learn(run: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn shuffles the cells of the file, of which the model's Predictor then sees each as a row."""
    table = csv.read_csv(
        f"{Path(run.uri).parent}/test.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)
    )
    names, labels = table.column_names[:-1], np.array(table["label"].to_pylist())
    cells = np.array([[str(cell) if cell is not None else "" for cell in row.values()] for row in table.to_pylist()])
    predictor = Predictor.load(run.uri)

    class Estimator:
        def fit(self) -> None: ...

        def predict(self, rows: np.ndarray) -> list[str]:
            return predictor.predict([dict(zip(names, row, strict=True)) for row in rows])

    def f1_macro(estimator: Estimator, rows: np.ndarray, labels: np.ndarray) -> float:
        return float(f1_score(labels, estimator.predict(rows), average="macro"))

    expected: Any = permutation_importance(
        Estimator(), cells[:, :-1], labels, scoring=f1_macro, n_repeats=importance.REPEATS, random_state=0
    )
    random = np.random.RandomState(np.random.RandomState(0).randint(np.iinfo(np.int32).max + 1))  # as it shuffles
    order, places, orders = np.arange(len(table)), np.arange(len(table)), []
    for _ in range(importance.REPEATS):
        random.shuffle(places)
        order = order[places]
        orders.append(order)
    monkeypatch.setattr(importance, "orders", lambda rows: np.stack(orders))
    found = compare_with_baselines(read_job(run), run, []).importance
    assert found is not None
    assert (found.error, found.rows) == ("", len(table))
    drops = {each.column: each.drop for each in found.columns}
    assert [drops[name].value for name in names] == pytest.approx(expected.importances_mean.tolist(), abs=1e-12)
    assert max(expected.importances_mean) > 0.01, "the network reads none of the columns"
    assert list(drops) == sorted(names, key=lambda name: -drops[name].value)
    assert all(drop.low <= drop.value <= drop.high for drop in drops.values())


def test_the_report_shows_it(run: Folder) -> None:
    first, again = (compare_with_baselines(read_job(run), run, ["mostFrequent"]) for _ in range(2))
    assert first.importance == again.importance
    stored: Any = read_comparison(run, read_job(run).spec.model.facts)
    assert stored.importance == first.importance
    report = render(run)
    assert "Which columns matter?" in report
    assert "the mean of 5 shuffles, on 169 test rows;" in report
    for each in stored.importance.columns:
        assert each.column in report
        assert f"{each.drop.value:+.4f}" in report
    assert "The importance of the columns was not computed" not in report


def test_rows_are_bounded_and_too_many_columns_are_told(run: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importance, "MAX_ROWS", 60)
    compare_with_baselines(read_job(run), run, [])
    assert "on 60 test rows, drawn at random of 169;" in render(run)
    monkeypatch.setattr(importance, "MAX_WORK", 100)
    compare_with_baselines(read_job(run), run, [])
    assert "The importance of the columns was not computed: it takes too long for 4 columns." in render(run)


def test_comparisons_of_earlier_versions_have_none(run: Folder) -> None:
    compare_with_baselines(read_job(run), run, ["mostFrequent"])
    written = Path(run.uri) / "baselines.json"
    text = written.read_text()
    start = text.index(',\n "importance"')
    written.write_text(text[:start] + "\n}")
    assert "Which columns matter?" not in render(run)
