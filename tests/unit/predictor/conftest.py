"""Runs as training leaves them, with weights that were never trained."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from trainjob.api import TrainJob
from trainjob.data import fit
from trainjob.models import build, save_model
from trainjob.storage import Folder

TEXTS = {
    "animal": ["a cat sat", "dogs bark loudly at night", "the cat and the dog", "birds sing"],
    "plant": ["a tree stands", "grass grows in the wet field all summer long", "the tree and the grass", "roses bloom"],
}


def make_run(folder: Path, spec: dict[str, Any]) -> Path:
    job = TrainJob.model_validate(
        {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}, "spec": spec}
    )
    fitted = fit(job.spec)
    fitted.save(Folder(str(folder)) / "fitted")
    document = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    (folder / "trainjob.yaml").write_text(yaml.safe_dump(document))
    torch.manual_seed(0)
    module = build(job.spec.model, fitted.preprocessor)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)  # so that predictions differ from row to row
    save_model(module, fitted.preprocessor, folder / "model")
    return folder


@pytest.fixture
def text_csv(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "title", "body", "tag"])
        for copy in range(5):
            for tag, texts in TEXTS.items():
                writer.writerows([f"{copy:03}", f"Row {copy}", text, tag] for text in texts)
    return path


@pytest.fixture
def text_run(tmp_path: Path, text_csv: Path) -> Path:
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
    spec: dict[str, Any] = {
        "model": {"textClassifier": {"encoder": encoder, "maxLength": 16, "classWeights": {"balanced": {}}}},
        "dataset": {"train": {"uri": str(text_csv)}, "text": ["title", "body"], "label": "tag"},
    }
    return make_run(tmp_path / "text-run", spec)


@pytest.fixture
def image_folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    folder = tmp_path / "images"
    for name in ("bright", "dark"):
        (folder / name).mkdir(parents=True)
        for index in range(10):
            pixels = random.integers(0, 128, (8, 6), np.uint8) + (100 if name == "bright" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{index}.png")
    return folder


@pytest.fixture
def image_run(tmp_path: Path, image_folder: Path) -> Path:
    model = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 8}, "loss": {"binaryCrossEntropy": {}}}}
    return make_run(tmp_path / "image-run", {"model": model, "dataset": {"train": {"uri": str(image_folder)}}})
