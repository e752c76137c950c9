"""A small TrainJob of every kind of model, in each form that its rows may have, and data for all of them."""

import copy
import csv
import json
import random
from pathlib import Path
from typing import Any

from PIL import Image

Fields = dict[str, Any]

ROWS = 60
_TEXTS: Fields = {"encoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}, "maxLength": 16}
_IMAGES: Fields = {"mlp": {"hidden": [8]}}
_TABLES: Fields = {"tabm": {"members": 2, "blocks": 1, "hiddenSize": 8, "embeddingSize": 4}}
_DECODER: Fields = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 300}
_TEXT, _IMAGE, _TABLE = ({"text": ["title"]}, {"image": "picture"}, {"features": ["size", "color"]})

FORMS: dict[str, tuple[str, Fields, Fields | None]] = {
    "textClassifier": ("textClassifier", _TEXTS, _TEXT | {"label": "tag"}),
    "textClassifier of pairs": ("textClassifier", _TEXTS, _TEXT | {"textPair": ["answer"], "label": "tag"}),
    "textClassifier with several labels": ("textClassifier", _TEXTS, _TEXT | {"labels": ["a", "b"]}),
    "textRegressor": ("textRegressor", _TEXTS, _TEXT | {"label": "size"}),
    "textRegressor with several numbers": ("textRegressor", _TEXTS, _TEXT | {"labels": ["size", "price"]}),
    "tokenClassifier": ("tokenClassifier", _TEXTS, _TEXT | {"label": "spans"}),
    "textEmbedder of pairs": ("textEmbedder", _TEXTS, _TEXT | {"textPair": ["answer"]}),
    "textEmbedder of triplets": ("textEmbedder", _TEXTS, _TEXT | {"textPair": ["answer"], "textNegative": ["other"]}),
    "textEmbedder of scores": ("textEmbedder", _TEXTS, _TEXT | {"textPair": ["answer"], "label": "size"}),
    "textEmbedder of classes": ("textEmbedder", _TEXTS, _TEXT | {"label": "tag"}),
    "imageClassifier": ("imageClassifier", _IMAGES, _IMAGE | {"label": "tag"}),
    "imageClassifier with several labels": ("imageClassifier", _IMAGES, _IMAGE | {"labels": ["a", "b"]}),
    "imageRegressor": ("imageRegressor", _IMAGES, _IMAGE | {"label": "size"}),
    "imageRegressor with several numbers": ("imageRegressor", _IMAGES, _IMAGE | {"labels": ["size", "price"]}),
    "tableClassifier": ("tableClassifier", _TABLES, _TABLE | {"label": "tag"}),
    "tableRegressor": ("tableRegressor", _TABLES, _TABLE | {"label": "price"}),
    "tableRegressor with several numbers": (
        "tableRegressor",
        _TABLES,
        {"features": ["size", "color"], "labels": ["price", "a"]},
    ),
    "causalLM": ("causalLM", {"decoder": _DECODER, "maxLength": 32}, _TEXT),
    "function": ("function", {"name": "loop:train"}, None),
}
"""The kind, its section of `spec.model`, and the columns of `spec.dataset`, by a name of the form."""


def trainjob(form: str, data: str) -> Fields:
    """The TrainJob of a form, whose rows are at the URI `data`."""
    kind, model, columns = copy.deepcopy(FORMS[form])
    spec: Fields = {"model": {kind: model}}
    if columns is not None:
        spec["dataset"] = {"train": {"uri": data}, **columns}
    return {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}, "spec": spec}


def write_rows(folder: Path, rows: int = ROWS) -> Path:
    """Rows for every form, in a file in the folder."""
    chance = random.Random(0)
    file = folder / "rows.csv"
    with file.open("w", newline="") as output:
        writer = csv.writer(output)
        writer.writerow(["title", "answer", "other", "tag", "a", "b", "size", "price", "spans", "color", "picture"])
        for number in range(rows):
            tag, city = chance.choice(["cat", "dog"]), chance.choice(["Oslo", "Rome"])
            words = " ".join(f"word{chance.randrange(40)}" for _ in range(4))
            title = f"{city} {tag}{chance.randrange(5)} {words} {number}"
            size = round(chance.random() + (tag == "dog"), 3)
            spans = json.dumps([{"start": 0, "end": len(city), "label": "city"}])
            pixels = [min(255, int(100 * size) + chance.randrange(50)) for _ in range(64)]
            picture = Image.new("L", (8, 8))
            picture.putdata(pixels)
            picture.save(folder / f"{number}.png")
            labels = [int(tag == "cat"), int(city == "Oslo")]
            answer, other = f"{tag} of {city} {number}", f"word{number} else {words}"
            price = round(3 * size + chance.random(), 3)
            writer.writerow(
                [
                    title,
                    answer,
                    other,
                    tag,
                    *labels,
                    size,
                    price,
                    spans,
                    chance.choice(["red", "blue"]),
                    f"{number}.png",
                ]
            )
    return file
