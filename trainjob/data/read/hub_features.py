"""Reads the column metadata that the Hugging Face library `datasets` writes into Parquet files."""

import json
from collections.abc import Mapping

import pyarrow as pa

HubFeatures = Mapping[str, Mapping[str, object]]


def hub_features(schema: pa.Schema) -> HubFeatures:
    """The features of each column; empty for files of other programs."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    if not isinstance(features, dict):
        return {}
    wrapped = {
        name: {"feature": each[0]} if isinstance(each, list) and each else each for name, each in features.items()
    }
    return {name: feature for name, feature in wrapped.items() if isinstance(feature, dict)}


def class_names(features: HubFeatures, column: str) -> tuple[str, ...] | None:
    """The names of a column's numbers, if it is a `ClassLabel`."""
    names = features.get(column, {}).get("names")
    return tuple(map(str, names)) if isinstance(names, list) else None


def item_names(features: HubFeatures, column: str) -> tuple[str, ...] | None:
    """The names of the numbers in a column of lists, if the items are `ClassLabel`s."""
    item = features.get(column, {}).get("feature")
    return class_names({column: item}, column) if isinstance(item, dict) else None
