"""A small TrainJob of each kind, and changes to it."""

import copy
from typing import Any

Document = dict[str, Any]

_DATA = {"train": {"uri": "s3://data/rows.csv"}}
MODELS: dict[str, Document] = {
    "textClassifier": {"encoder": {}},
    "textRegressor": {"encoder": {}},
    "tokenClassifier": {"encoder": {}},
    "textEmbedder": {"encoder": {}},
    "imageClassifier": {"mlp": {}},
    "imageRegressor": {"mlp": {}},
    "tableClassifier": {"tabm": {}},
    "tableRegressor": {"tabm": {}},
    "causalLM": {"decoder": {}},
    "function": {"name": "train:loop"},
}


TEXT_MODELS = ("textClassifier", "textRegressor", "tokenClassifier", "textEmbedder")


def document(model: str = "textClassifier", name: str = "job") -> Document:
    """A small TrainJob that is valid in a cluster."""
    columns: Document = {"text": ["title"]} if model in (*TEXT_MODELS, "causalLM") else {}
    if model == "textEmbedder":
        columns["textPair"] = ["answer"]
    if model in ("textClassifier", "textRegressor", "tokenClassifier", "tableClassifier", "tableRegressor"):
        columns["label"] = "tag"
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "model": {model: copy.deepcopy(MODELS[model])},
            "dataset": {**copy.deepcopy(_DATA), **columns},
            "storage": {"uri": "s3://runs"},
        },
    }


def changed(doc: Document, changes: dict[str, Any]) -> Document:
    """`doc` with fields of its spec set, by dotted path; `...` takes a field away."""
    doc = copy.deepcopy(doc)
    for path, value in changes.items():
        *parents, last = path.split(".")
        part = doc["spec"]
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value
        if value is ...:
            del part[last]
    return doc
