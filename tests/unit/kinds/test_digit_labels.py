"""Handwritten digits of scikit-learn with several labels each: scores and baselines are those of scikit-learn."""

import json
import runpy
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.multiclass import OneVsRestClassifier

from predictor_runs import finish, make_run
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.rows import sample
from trainjob.data import Fitted, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.evaluate import evaluate
from trainjob.evaluation.label_estimates import name_lists
from trainjob.evaluation.scores.labels import LabelsScores
from trainjob.models import build, save_model
from trainjob.predictor import Predictor
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder

EXAMPLE = Path(__file__).parents[3] / "examples" / "make_digit_labels.py"
NAMES = ["even", "above_4", "loop"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(EXAMPLE), "--output", str(folder)])
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    """A run whose network was trained, in a plain loop."""
    document = {
        "model": {"imageClassifier": {"mlp": {"hidden": [32]}, "dropout": 0.0}},
        "dataset": {
            **{part: {"uri": str(data / f"{part}.parquet")} for part in ("train", "test")},
            "labels": NAMES,
        },
    }
    run, spec = make_run(data / "run", document), TrainJobSpec.model_validate(document)
    fitted = Fitted.load(Folder(str(run)) / "fitted")
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
    save_model(module, fitted.preprocessor, run / "model")
    state = json.loads((run / "model" / "preprocessor.json").read_text())
    (run / "model" / "preprocessor.json").write_text(json.dumps(state | {"thresholds": [0.4, 0.5, 0.6]}))
    return run


def labels_of(file: Path) -> np.ndarray:
    table = parquet.read_table(file)
    return np.stack([table[name].to_numpy() for name in NAMES], axis=1)


def test_scores_are_those_of_scikit_learn(run: Path, data: Path) -> None:
    predictor = Predictor.load(run)
    assert predictor.classes == NAMES
    images = [Image.open(BytesIO(file.as_py())) for file in parquet.read_table(data / "test.parquet")["image"]]
    probabilities, labels = predictor.predict_proba(images), labels_of(data / "test.parquet")
    predicted = probabilities >= np.array([0.4, 0.5, 0.6])
    scores = evaluate(Folder(str(run)), str(data / "test.parquet"))
    assert isinstance(scores, LabelsScores)
    each = f1_score(labels, predicted, average=None)
    assert [label.f1 for label in scores.per_label] == pytest.approx(each.tolist(), abs=1e-6)
    assert scores.f1.value == pytest.approx(f1_score(labels, predicted, average="macro"), abs=1e-6)
    assert scores.micro_f1.value == pytest.approx(f1_score(labels, predicted, average="micro"), abs=1e-6)
    precisions = average_precision_score(labels, probabilities, average=None)
    assert [label.average_precision for label in scores.per_label] == pytest.approx(precisions.tolist(), abs=1e-6)
    assert scores.f1.value > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_baselines_are_those_of_scikit_learn(run: Path) -> None:
    folder = Folder(str(run))
    job, fitted = read_contents(folder).job, Fitted.load(folder / "fitted")
    train, held = sample(job.spec, fitted, "train"), sample(job.spec, fitted, "test")
    guessed = {"prediction": name_lists(held.labels[::-1].astype(bool), NAMES)}
    columns = guessed | {"label": name_lists(held.labels.astype(bool), NAMES)}
    write_predictions(folder, "model", pa.table({"row": held.rows, **columns}))
    finish(folder)
    baselines: list[Any] = compare_with_baselines(job, folder, ["mostFrequent", "pixels"]).baselines
    features, held_features = (np.asarray(each.values) / 255 for each in (train, held))
    regression = LogisticRegression(C=10, solver="saga", max_iter=300, random_state=0)
    linear = OneVsRestClassifier(regression).fit(features.astype(np.float32), train.labels)
    frequent = DummyClassifier(strategy="most_frequent").fit(features, train.labels)
    expected = (frequent.predict(held_features), linear.predict(held_features.astype(np.float32)))
    for baseline, predicted in zip(baselines, expected, strict=True):
        for average, found in (("macro", baseline.standing.f1), ("micro", baseline.standing.micro_f1)):
            score = f1_score(held.labels, predicted, average=average, zero_division=0)
            assert found.value == pytest.approx(score, abs=1e-6)
