"""Tiny sets to train on, and the runs that do it."""

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sklearn.datasets import load_digits
from training_runs import Run, write_run


@pytest.fixture
def new_run(tmp_path: Path, text_set: Path, image_set: Path) -> Callable[..., Run]:
    """Makes a run: `new_run("text" | "image", {"training.epochs": 3, …})`."""

    def make(kind: str, changes: dict[str, Any] | None = None, name: str = "run") -> Run:
        return write_run(tmp_path, kind, text_set if kind == "text" else image_set, changes or {}, name)

    return make


@pytest.fixture(scope="session")
def text_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of 3 to 40 words, one in five of them telling the class; 4 classes, 601 and 151 rows."""
    folder = tmp_path_factory.mktemp("texts")
    chance = random.Random(0)
    classes = ["blue", "green", "grey", "red"]

    def word(label: str) -> str:
        return f"{label}{chance.randrange(20)}" if chance.random() < 0.2 else f"word{chance.randrange(150)}"

    for name, rows in (("train", 601), ("test", 151)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["title", "body", "label"])
            for _ in range(rows):
                label = chance.choice(classes)
                texts = (
                    " ".join(word(label) for _ in range(chance.randint(low, high))) for low, high in ((1, 5), (2, 35))
                )
                writer.writerow([*texts, label])
    return folder


@pytest.fixture(scope="session")
def image_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """scikit-learn's digits 0 to 4 as a folder of PNG files for each class, in `train` and `test`."""
    folder = tmp_path_factory.mktemp("images")
    images, labels = load_digits(n_class=5, return_X_y=True)
    for index, (pixels, label) in enumerate(zip(images.reshape(-1, 8, 8), labels, strict=True)):
        file = folder / ("test" if index % 5 == 0 else "train") / f"digit-{label}" / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 15).astype("uint8")).save(file)
    return folder
