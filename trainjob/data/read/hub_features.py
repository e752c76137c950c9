"""Reads the column metadata that the Hugging Face library `datasets` writes into Parquet files."""

import json
from collections.abc import Mapping

import pyarrow as pa

from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.tables import ParquetRows

Features = Mapping[str, Mapping[str, object]]


def hub_features(schema: pa.Schema) -> Features:
    """The features of each column; empty for files of other programs."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    if not isinstance(features, dict):
        return {}
    return {name: feature for name, feature in features.items() if isinstance(feature, dict)}


def class_names(features: Features, column: str) -> tuple[str, ...] | None:
    """The names of a column's numbers, if it is a `ClassLabel`."""
    names = features.get(column, {}).get("names")
    return tuple(map(str, names)) if isinstance(names, list) else None


def numbered_label_notes(part: SourcePart, label: str) -> list[str]:
    """A note if the part's file has names for the numbers that are the classes."""
    table = part.part if isinstance(part, Partition) else part
    names = class_names(hub_features(table.schema()), label) if isinstance(table, ParquetRows) else None
    if not names:
        return []
    shown = ", ".join(f'{number} is "{name}"' for number, name in enumerate(names[:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return [f'the classes are the numbers in "{label}", for which the files have names: {shown}{more}']
