"""A file for a cluster: one TrainJob and other objects that it needs, such as a ConfigMap with its code."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainjob.api.document import Document, InvalidDocument, Problem, parse_all, value_at
from trainjob.api.load import (
    PATHS,
    as_text,
    position_in,
    position_in_content,
    read_text,
    trainjob_in,
    trainjob_of,
    without_nulls,
)
from trainjob.api.names import KIND
from trainjob.api.overrides import apply_overrides
from trainjob.api.trainjob import TrainJob
from trainjob.schema.uris import PATH


def load_manifest(path: Path, overrides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """All objects of the YAML file `path`, in their order, the TrainJob among them with `overrides` applied.

    The TrainJob is checked as by `trainjob run`, and must not name a path that exists only on this machine.
    Raises InvalidDocument.
    """
    text = read_text(path)
    trainjob_in(text, path, overrides)
    return _checked(parse_all(text, partial(position_in, path)), overrides)


def manifest_of(content: Mapping[str, Any], overrides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Does the same for a file's content, which is a TrainJob."""
    trainjob_of(content, overrides)
    return _checked(parse_all(as_text(content), position_in_content), overrides)


def _checked(documents: list[Document], overrides: Sequence[str]) -> list[dict[str, Any]]:
    problems: list[Problem] = []
    for document in documents:
        if is_train_job(document.data):
            apply_overrides(document, overrides)
            document.data = without_nulls(document.data, TrainJob)
            problems += _local_paths(document)
        else:
            problems += _missing_names(document)
        problems += document.problems
    if problems:
        raise InvalidDocument(problems)
    return [document.data for document in documents]


def is_train_job(data: Any) -> bool:
    return isinstance(data, dict) and data.get("kind") == KIND


def _local_paths(document: Document) -> Iterator[Problem]:
    for path in PATHS:
        value = value_at(document.data, path)
        for found in value if isinstance(value, list) else [value]:
            if isinstance(found, str) and _is_local(found, may_be_on_hub=path[-1] == "pretrained"):
                message = (
                    f"{found} is a path on this machine, and the pods run elsewhere: use s3:// or gs://, or the "
                    "absolute path of a volume in spec.pods.volumeMounts"
                )
                yield Problem(document.position(path), path, message)


def _is_local(value: str, may_be_on_hub: bool) -> bool:
    if value.startswith("/") or not re.fullmatch(PATH, value):
        return False
    return value.startswith(("./", "../")) or not may_be_on_hub


def _missing_names(document: Document) -> Iterator[Problem]:
    for path in (("apiVersion",), ("kind",), ("metadata", "name")):
        if not isinstance(value_at(document.data, path), str):
            yield Problem(document.position(path), path, "is required of every object in the file")
