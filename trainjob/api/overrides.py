"""Fields set on the command line with `--set spec.training.epochs=3`."""

import re
from collections.abc import Sequence
from typing import Any

from trainjob.api.document import Document, FieldPath, InvalidDocument, Position, Problem, dotted, parse

_NAME, _INDEX = r"[^.=\[\]\s\ud800-\udfff]+", r"\[\d+\]"
_PATH = re.compile(rf"{_NAME}({_INDEX})*(\.{_NAME}({_INDEX})*)*")
_AFTER_THE_FILE = 10**9
"""Overrides sort after every line of the file."""


def apply_overrides(document: Document, overrides: Sequence[str]) -> None:
    """Sets fields of `document` from `path=value`, with the value in YAML; creates missing parent mappings.

    Problems of an override go into `document.problems`.
    """
    for number, override in enumerate(overrides):
        _apply(document, override, Position(_AFTER_THE_FILE + number, f"--set {override}"))


def _apply(document: Document, override: str, position: Position) -> None:
    path_text, equals, value_text = override.partition("=")
    if not equals or not _PATH.fullmatch(path_text):
        document.problems.append(Problem(position, (), "write it as PATH=VALUE, such as spec.training.epochs=3"))
        return
    path = _parse_path(path_text)
    try:
        value = parse(value_text, lambda _line, _column: position, at=path)
        _set(document.data, path, value.data)
    except InvalidDocument as error:
        document.problems += error.problems
    except _CannotSet as error:
        document.problems.append(Problem(position, path, str(error)))
    else:
        stale = [other for other in document.positions if other[: len(path)] == path]
        for other in stale:
            del document.positions[other]
        for depth in range(1, len(path)):
            document.positions.setdefault(path[:depth], position)
        document.positions |= value.positions
        document.problems += value.problems


def _parse_path(text: str) -> FieldPath:
    parts = re.findall(rf"{_NAME}|{_INDEX}", text)
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts)


class _CannotSet(Exception):
    pass


def _set(target: Any, path: FieldPath, value: Any) -> None:
    for depth, part in enumerate(path):
        _check_can_hold(part, target, path[:depth])
        if depth == len(path) - 1:
            target[part] = value
        elif isinstance(part, str) and target.get(part) is None:
            target[part] = {}
        target = target[part]


def _check_can_hold(part: str | int, target: Any, path: FieldPath) -> None:
    if isinstance(part, str) and not isinstance(target, dict):
        raise _CannotSet(f"{dotted(path)} is not a mapping")
    if isinstance(part, int) and not (isinstance(target, list) and part < len(target)):
        raise _CannotSet(f"{dotted(path)} has no item [{part}]")
