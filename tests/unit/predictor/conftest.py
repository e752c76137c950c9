"""A run for texts and one for images, and what they were fitted on."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from predictor_runs import make_run

TEXTS = {
    "animal": ["a cat sat", "dogs bark loudly at night", "the cat and the dog", "birds sing"],
    "plant": ["a tree stands", "grass grows in the wet field all summer long", "the tree and the grass", "roses bloom"],
}


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
