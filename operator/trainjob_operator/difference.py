"""Whether an object in the cluster still has all that was applied."""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def contains(actual: Any, desired: Any) -> bool:
    """Whether `actual` has every field of `desired`. Others may have added fields, and items to lists whose items have
    names, such as containers and environment variables."""
    if isinstance(desired, Mapping):
        wanted = cast("Mapping[str, Any]", desired)
        return isinstance(actual, Mapping) and all(
            contains(cast("Mapping[str, Any]", actual).get(key), value) for key, value in wanted.items()
        )
    if isinstance(desired, list):
        return _list_contains(actual or [], cast("list[Any]", desired))
    return actual == desired


def _list_contains(actual: Sequence[Any], desired: Sequence[Any]) -> bool:
    if desired and _are_named(desired) and _are_named(actual):
        named = {item["name"]: item for item in actual}
        return all(contains(named.get(item["name"]), item) for item in desired)
    return len(actual) == len(desired) and all(map(contains, actual, desired))


def _are_named(items: Sequence[Any]) -> bool:
    """Whether each item has a name of its own: the mounts of one volume share theirs."""
    names = [item.get("name") for item in items if isinstance(item, Mapping)]
    return None not in names and len(set(names)) == len(items)
