"""A small TrainJob of each kind, and changes to it."""

import copy
from typing import Any, get_args

from trainjob.kinds import KINDS
from trainjob.kinds.model import KindSpec
from trainjob.schema.base import OneOf, StrictModel

Document = dict[str, Any]

_DATA = {"train": {"uri": "s3://data/rows.csv"}}
_COLUMNS: Document = {"text": ["title"], "textPair": ["answer"], "label": "tag"}


def _from_scratch(spec: type[StrictModel]) -> Document:
    """The smallest section of a kind of model, which needs no pretrained network."""
    if not issubclass(spec, OneOf):
        return {"name": "train:loop"}
    return {next(name for name in spec.choice_fields() if name != "pretrained"): {}}


MODELS: dict[str, Document] = {spec.facts.field: _from_scratch(spec) for spec in get_args(KindSpec)}
"""The section of `spec.model` of each kind."""


def document(model: str = "textClassifier", name: str = "job") -> Document:
    """A small TrainJob that is valid in a cluster."""
    columns = {field: _COLUMNS[field] for field, *_ in KINDS[model].columns.required}
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "model": {model: copy.deepcopy(MODELS[model])},
            "dataset": copy.deepcopy({**_DATA, **columns}),
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
