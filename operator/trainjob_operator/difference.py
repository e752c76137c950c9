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
    if desired and all(isinstance(item, Mapping) and "name" in item for item in desired):
        named = {item.get("name"): item for item in actual}
        return all(contains(named.get(item["name"]), item) for item in desired)
    return len(actual) == len(desired) and all(map(contains, actual, desired))
