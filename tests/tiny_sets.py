"""Tiny sets to train on."""

import csv
import random
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits


def write_texts(folder: Path) -> Path:
    """Texts of 3 to 40 words, one in five of them telling the class; 4 classes, 601 and 151 rows."""
    chance = random.Random(0)
    for name, rows in (("train", 601), ("test", 151)):
        _write_texts(folder / f"{name}.csv", ["title", "body", "label"], rows, chance)
    return folder


def write_projects(file: Path, rows: int) -> Path:
    """The same texts, with the columns of README's TrainJob."""
    _write_texts(file, ["title", "description", "tag"], rows, random.Random(0))
    return file


def _write_texts(path: Path, columns: list[str], rows: int, chance: random.Random) -> None:
    classes = ["blue", "green", "grey", "red"]

    def word(label: str) -> str:
        return f"{label}{chance.randrange(20)}" if chance.random() < 0.2 else f"word{chance.randrange(150)}"

    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for _ in range(rows):
            label = chance.choice(classes)
            texts = (" ".join(word(label) for _ in range(chance.randint(low, high))) for low, high in ((1, 5), (2, 35)))
            writer.writerow([*texts, label])


def write_digits(folder: Path) -> Path:
    """scikit-learn's digits 0 to 4 as a folder of PNG files for each class, in `train` and `test`."""
    images, labels = load_digits(n_class=5, return_X_y=True)
    for index, (pixels, label) in enumerate(zip(images.reshape(-1, 8, 8), labels, strict=True)):
        file = folder / ("test" if index % 5 == 0 else "train") / f"digit-{label}" / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 15).astype("uint8")).save(file)
    return folder
