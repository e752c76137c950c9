"""Detects fields that somebody has changed or removed since the operator applied them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast


def has_drifted(actual: Any, desired: Any) -> bool:
    """Whether a field of `desired` is missing from `actual` or has another value there. Added fields do not
    count, nor do items added to lists of named items, such as containers and environment variables."""
    return first_drift(actual, desired) is not None


def first_drift(actual: Any, desired: Any) -> str | None:
    """Path of the first field that has drifted, such as `spec.containers[ray-head].image`; None if there is none."""
    return next(_drifts(actual, desired, ""), None)


def _drifts(actual: Any, desired: Any, path: str) -> Iterator[str]:
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        has, wanted = cast("Mapping[str, Any]", actual), cast("Mapping[str, Any]", desired)
        for key, value in wanted.items():
            yield from _drifts(has.get(key), value, f"{path}.{key}" if path else key)
    elif isinstance(desired, list):
        yield from _drifts_of_list(actual or [], cast("list[Any]", desired), path)
    elif isinstance(desired, Mapping) or actual != desired:
        yield path


def _drifts_of_list(actual: Sequence[Any], desired: Sequence[Any], path: str) -> Iterator[str]:
    if desired and _are_named(desired) and _are_named(actual):
        named = {item["name"]: item for item in actual}
        for item in desired:
            yield from _drifts(named.get(item["name"]), item, f"{path}[{item['name']}]")
    elif len(actual) != len(desired):
        yield path
    else:
        for number, (has, wanted) in enumerate(zip(actual, desired, strict=True)):
            yield from _drifts(has, wanted, f"{path}[{number}]")


def _are_named(items: Sequence[Any]) -> bool:
    """Whether each item has a unique name; several mounts of one volume share theirs."""
    names = [item.get("name") for item in items if isinstance(item, Mapping)]
    return None not in names and len(set(names)) == len(items)
