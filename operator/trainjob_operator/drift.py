"""Drift: whether somebody has changed or removed a field that the operator has applied."""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def has_drifted(actual: Any, desired: Any) -> bool:
    """Whether `actual` lacks a field of `desired`, or has it with another value. It is no drift where others have added
    fields, or items to lists whose items have names, such as containers and environment variables."""
    if isinstance(desired, Mapping):
        wanted = cast("Mapping[str, Any]", desired)
        return not isinstance(actual, Mapping) or any(
            has_drifted(cast("Mapping[str, Any]", actual).get(key), value) for key, value in wanted.items()
        )
    if isinstance(desired, list):
        return _list_has_drifted(actual or [], cast("list[Any]", desired))
    return actual != desired


def _list_has_drifted(actual: Sequence[Any], desired: Sequence[Any]) -> bool:
    if desired and _are_named(desired) and _are_named(actual):
        named = {item["name"]: item for item in actual}
        return any(has_drifted(named.get(item["name"]), item) for item in desired)
    return len(actual) != len(desired) or any(map(has_drifted, actual, desired))


def _are_named(items: Sequence[Any]) -> bool:
    """Whether each item has a name of its own: the mounts of one volume share theirs."""
    names = [item.get("name") for item in items if isinstance(item, Mapping)]
    return None not in names and len(set(names)) == len(items)
