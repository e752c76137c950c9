"""On the five small sets of scikit-learn, a network for tables is as good as tuned boosting, or its report prefers the
latter."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from training_runs import write_trainjob

from nightly import at_night
from trainjob.api.load import load_trainjob
from trainjob.evaluation.number_estimates import NumberEstimates
from trainjob.evaluation.paired import ClassEstimates
from trainjob.report.baselines import better_baseline
from trainjob.runs.comparison import read_comparison
from trainjob.storage import Folder

WITHIN = 0.02
SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast-cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
NETWORK = {"tabm": {"members": 8, "hiddenSize": 64, "embeddingSize": 8}}


def write_set(folder: Path, load: Callable[..., Any], is_measured: bool) -> None:
    found = load(**({"scaled": False} if is_measured else {}))
    labels = found.target if is_measured else found.target_names[found.target].astype(str)
    columns = dict(zip(map(str, found.feature_names), found.data.T, strict=True))
    table = pa.table(columns | {"label": pa.array(labels)})
    strata = None if is_measured else found.target
    parts = train_test_split(range(len(table)), test_size=0.25, stratify=strata, random_state=0)
    for name, rows in zip(("train", "test"), parts, strict=True):
        write_csv(table.take(sorted(rows)), folder / f"{name}.csv")


@pytest.mark.parametrize("name", ["iris", *map(at_night, list(SETS)[1:])])
def test_the_network_is_as_good_as_boosting_or_the_report_prefers_it(tmp_path: Path, name: str) -> None:
    is_measured = name == "diabetes"
    write_set(tmp_path, SETS[name], is_measured)
    sets = {part: {"uri": f"{part}.csv"} for part in ("train", "test")}
    epochs = 30 if name == "digits" else 100
    spec = {
        "model": {"tableRegressor" if is_measured else "tableClassifier": NETWORK},
        "dataset": {**sets, "label": "label"},
        "training": {"epochs": epochs, "earlyStopping": {"patience": 16}},
        "baselines": {"lightgbm": {}},
        "workers": {"count": 1},
        "storage": {"uri": "runs"},
    }
    run = write_trainjob(tmp_path, name, spec)
    output = run.finish().stdout
    comparison = read_comparison(Folder(str(run.folder)), load_trainjob(run.file).spec.model.facts)
    assert comparison is not None
    [boosting] = comparison.baselines
    assert boosting.error == ""
    scores = [_score(each) for each in (comparison.model, boosting.standing)]
    if scores[0] >= scores[1] - WITHIN:
        return
    better = better_baseline(comparison)
    assert better is not None
    assert better.in_brief in output
    assert better.sentence.split("`")[0] in (run.folder / "report.html").read_text()


def _score(estimates: Any) -> float:
    """The score in units that "within 0.02" fits: macro F1, or R²."""
    if isinstance(estimates, NumberEstimates):
        assert estimates.r2 is not None
        return estimates.r2.value
    assert isinstance(estimates, ClassEstimates)
    return estimates.f1.value
