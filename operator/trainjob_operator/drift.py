"""Detects fields that somebody has changed or removed since the operator applied them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast


def has_drifted(actual: Any, desired: Any) -> bool:
    """Whether a field of `desired` is missing from `actual` or has another value there. Added fields do not
    count, nor do items added to lists of named items, such as containers and environment variables."""
    return first_drift(actual, desired) is not None


def first_drift(actual: Any, desired: Any) -> str | None:
    """Path of the first field that has drifted, such as `spec.containers[ray-head].image`; None if there is none."""
    path = _drift(actual, desired)
    return None if path is None else path.removeprefix(".")


def _drift(actual: Any, desired: Any) -> str | None:
    """The path below `desired`; empty if `desired` itself has drifted. Most parts are equal, which costs one
    comparison."""
    if actual == desired:
        return None
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        has, wanted = cast("Mapping[str, Any]", actual), cast("Mapping[str, Any]", desired)
        return _first_drift_below((f".{key}", has.get(key), value) for key, value in wanted.items())
    if isinstance(desired, list):
        return _drift_of_list(actual or [], cast("list[Any]", desired))
    return ""


def _drift_of_list(actual: Sequence[Any], desired: Sequence[Any]) -> str | None:
    if desired and _are_named(desired) and _are_named(actual):
        named = {item["name"]: item for item in actual}
        return _first_drift_below((f"[{item['name']}]", named.get(item["name"]), item) for item in desired)
    if len(actual) != len(desired):
        return ""
    return _first_drift_below((f"[{number}]", *pair) for number, pair in enumerate(zip(actual, desired, strict=True)))


def _first_drift_below(values: Iterable[tuple[str, Any, Any]]) -> str | None:
    """The first drift in values given as (step of the path, actual, desired)."""
    for step, actual, desired in values:
        if (path := _drift(actual, desired)) is not None:
            return step + path
    return None


def _are_named(items: Sequence[Any]) -> bool:
    """Whether each item has a unique name; several mounts of one volume share theirs."""
    names = [item.get("name") for item in items if isinstance(item, Mapping)]
    return None not in names and len(set(names)) == len(items)
