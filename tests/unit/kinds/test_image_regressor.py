"""A number for each image: read, fitted, learned, saved, answered and compared."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, root_mean_squared_error

from predictor_runs import finish, make_run
from tiny_image_models import SIDE, save_vit
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.data.batches.prepare import read_set
from trainjob.errors import DataError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.numbers import NumberScores
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.targets.number import OneNumber
from trainjob.models import build, save_model
from trainjob.predictor import Predictor
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder

CNN: dict[str, Any] = {"cnn": {"channels": [4], "hidden": 8}, "dropout": 0.0}


def write_dots(folder: Path, rows: int, seed: int) -> Path:
    """Images with bright dots on noise, and a table with 100 and ten for each dot."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "points"])
        for row in range(rows):
            pixels, dots = chance.integers(0, 40, (8, 8)).astype(np.uint8), int(chance.integers(0, 20))
            pixels.reshape(-1)[chance.choice(64, dots, replace=False)] = 250
            Image.fromarray(pixels).save(folder / f"{row}.png")
            table.writerow([f"{row}.png", 100 + 10 * dots])
    return folder


def spec_of(folder: Path, **model: Any) -> dict[str, Any]:
    return {
        "model": {"imageRegressor": model or CNN},
        "dataset": {
            "train": {"uri": str(folder / "train")},
            "test": {"uri": str(folder / "test")},
            "label": "points",
        },
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dots")
    write_dots(folder / "train", 200, 0)
    write_dots(folder / "test", 50, 1)
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    """A run whose network was trained, in a plain loop."""
    run, spec = make_run(data / "run", spec_of(data)), TrainJobSpec.model_validate(spec_of(data))
    fitted = Fitted.load(Folder(str(run)) / "fitted")
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
    save_model(module, fitted.preprocessor, run / "model")
    return run


def test_a_network_of_an_earlier_version_has_one_number(run: Path, data: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_bytes())
    del config["outputs"]
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    files = [str(data / f"test/{row}.png") for row in range(5)]
    assert Predictor.load(tmp_path / "model").predict(files) == Predictor.load(run).predict(files)


def test_statistics_of_pixels_and_of_labels_are_kept_apart(run: Path) -> None:
    preprocessor = Fitted.load(Folder(str(run)) / "fitted").preprocessor
    images, target = preprocessor.input, preprocessor.target
    assert isinstance(images, ImageInput)
    assert isinstance(target, OneNumber)
    assert 0 < images.mean[0] < 1
    assert 150 < target.mean < 250
    saved = json.loads((run / "model/preprocessor.json").read_bytes())
    assert (saved["mean"], saved["label_mean"]) == (images.mean, target.mean)


def test_answers_and_scores_are_in_the_unit_of_the_labels(run: Path, data: Path) -> None:
    with open(data / "test/metadata.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    predicted = np.array(Predictor.load(run).predict([str(data / "test" / row["file_name"]) for row in rows]))
    labels = np.array([float(row["points"]) for row in rows])
    scores = evaluate(Folder(str(run)), str(data / "test"))
    assert isinstance(scores, NumberScores)
    assert scores.rmse.value == pytest.approx(root_mean_squared_error(labels, predicted), rel=1e-6)
    assert scores.r2 is not None
    assert scores.r2.value == pytest.approx(r2_score(labels, predicted), rel=1e-5)
    assert scores.r2.value > 0.8


@pytest.mark.parametrize("pretrained", [False, True], ids=["from scratch", "pretrained"])
def test_a_saved_network_gives_the_same_answers(data: Path, tmp_path: Path, pretrained: bool) -> None:
    model = {"pretrained": str(save_vit(tmp_path / "vit"))} if pretrained else {"mlp": {"hidden": [8]}}
    spec = TrainJobSpec.model_validate(spec_of(data, **model))
    fitted = fit(spec)
    images = fitted.preprocessor.input
    assert isinstance(images, ImageInput)
    assert (images.height, images.channels) == ((SIDE, 3) if pretrained else (8, 1))
    module = build(spec.model, fitted.preprocessor)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["test"])
    outputs = module.eval()(**batch.inputs)
    assert outputs.shape == (50, 1)
    save_model(module, fitted.preprocessor, tmp_path / "model")
    target: Any = fitted.preprocessor.target
    expected = target.numbers(outputs).tolist()
    rows = [str(data / "test" / f"{row}.png") for row in range(50)]
    assert Predictor.load(tmp_path / "model").predict(rows) == pytest.approx(expected, rel=1e-6)


def test_labels_that_are_no_numbers_are_named_with_their_images(tmp_path: Path) -> None:
    folder = write_dots(tmp_path / "train", 30, 0)
    lines = (folder / "metadata.csv").read_text().splitlines()
    (folder / "metadata.csv").write_text("\n".join([lines[0], "0.png,many", "1.png,", *lines[3:]]))
    write_dots(tmp_path / "test", 9, 1)
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    found = str(caught.value)
    assert "2 of 30 rows cannot be used" in found
    assert "is not a number: " in found
    assert "0.png" in found


def test_equal_labels_of_a_column_that_was_found_are_refused(tmp_path: Path) -> None:
    folder = write_dots(tmp_path / "train", 5, 0)
    (folder / "metadata.csv").write_text("file_name,target\n" + "".join(f"{row}.png,3\n" for row in range(5)))
    spec = spec_of(tmp_path)
    del spec["dataset"]["label"], spec["dataset"]["test"]
    with pytest.raises(DataError, match="every row has the label 3; at least two different ones are needed"):
        fit(TrainJobSpec.model_validate(spec))


def test_the_model_is_compared_with_ridge_regression_on_pixels(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    job = read_contents(run).job
    fitted = Fitted.load(run / "fitted")
    sets = {}
    for name in ("train", "test"):
        tables = list(read_set(job.spec, fitted, name))
        pixels = np.concatenate([fitted.preprocessor.input.plain(rows) for rows, _ in tables]) / 255
        sets[name] = pixels, np.concatenate([labels for _, labels in tables if labels is not None])
    (features, labels), (held_features, held) = sets["train"], sets["test"]
    stored = pa.table({"row": np.arange(len(held)), "prediction": held + 1, "label": held})
    write_predictions(run, "model", stored)
    finish(run)
    mean, linear = compare_with_baselines(job, run, ["mean", "pixels"]).baselines
    assert (mean.error, linear.error) == ("", "")
    ridge = Ridge().fit(features, (labels - labels.mean()) / labels.std())
    predicted = ridge.predict(held_features) * labels.std() + labels.mean()
    found: Any = linear.standing
    assert found.rmse.value == pytest.approx(root_mean_squared_error(held, predicted), rel=1e-6)
    assert linear.lead is not None
    assert linear.lead.verdict == "better"
