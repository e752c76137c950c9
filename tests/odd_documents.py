"""Documents with one thing changed anywhere in them, as data or as YAML that no program would write."""

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

ODD_VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 0.5, -0.5, 1e308, 1e-308, 2**31, 2**40, 2**63, 10**400),
    *("", " ", "x", "1", "-1", "1e400", "3h", "500m", "1.5Gi", "0", "true", "null", "~", "x\n", "a\x00b", "\u2028"),
    *("/", "//", "./x", "..", "a/b", "s3://x", "s3://", "gs://b/é", "https://h/x", "file:///", "ü", "\N{ROCKET}"),
    *("a" * 300, "7" * 5000, [], [1], ["x"], [None], [[]], [{}], {}, {"x": 1}, {"name": "x"}, {"name": 1}, {"": ""}),
    *([{"name": "x"}, {"name": "x"}], [{"name": []}]),
]
ODD_YAML = (
    *("2024-01-01", "2024-01-01T00:00:00Z", "1:30", ".inf", "-.inf", ".nan", "1e999", "0x", "0b2", "0o9", "1_0", "+1"),
    *(
        "y",
        "=",
        "<<",
        "!!binary aGk=",
        "!!binary ///",
        "!!timestamp x",
        "!!int x",
        "!!int ''",
        "!!float ''",
        "!!bool 3",
    ),
    *("!!null 1", "!!str 1", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1]", "!!python/object:os.system {}", "! x"),
    *("!custom x", "&a [*a]", "&a {b: *a}", "*absent", "[&a x, *a]", "{<<: {x: 1}}", "{<<: 3}", "{<<: [1]}"),
    *(
        "{a: 1, a: 2}",
        "{? [a] : b}",
        "{? {a: b} : c}",
        "{1: 2}",
        "{null: 2}",
        "{true: 1}",
        "{1.5: 2}",
        "{2024-01-01: 2}",
    ),
    *("{!!binary aGk=: 1}", '"\\ud800"', '"\\0"', '"\\U0010FFFF"', '"\\UFFFFFFFF"', "'", '"', "{", "]", "@", "`", "%"),
    *("? ", "- ", ": ", "\t", "#", "--- 1", "\n---\n", "\n...\n", "[" * 2000, "{a: " * 500, "\x00", "\x85", "\ufeff"),
    *("\ud800", "9" * 5000, "1" + "_" * 50, "\n%YAML 1" + "9" * 5000 + ".1\n---\n"),
)
_MARK = "THE-ODD-ONE"


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything inside `part`."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield part, key
        yield from places(value)


@st.composite
def spoiled(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> Any:
    """A document with one to three fields replaced by an odd value, by a part of another place, removed or added."""
    document = copy.deepcopy(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        _spoil(document, draw)
    return document


@st.composite
def odd_yaml(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> str:
    """A document in YAML in which one value or one name is something strange, or a few characters are."""
    document = copy.deepcopy(draw(documents))
    if found := list(places(document)):
        container, key = draw(st.sampled_from(found))
        if isinstance(container, dict) and draw(st.booleans()):
            container[_MARK] = container.pop(key)
        else:
            container[key] = _MARK
    text = yaml.safe_dump(document, default_flow_style=draw(st.sampled_from([None, True, False])), allow_unicode=True)
    text = text.replace(_MARK, draw(st.sampled_from(ODD_YAML)))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 5))
        text = text[:start] + draw(st.sampled_from(ODD_YAML) | st.text(max_size=2)) + text[end:]
    return text


def _spoil(document: Any, draw: st.DrawFn) -> None:
    found = list(places(document))
    if not found:
        return
    container, key = draw(st.sampled_from(found))
    match draw(st.sampled_from(["replace", "replace", "remove", "add", "move"])):
        case "remove":
            del container[key]
        case "add" if isinstance(container, dict):
            container[draw(st.sampled_from(["name", "uri", "pod", "typo", "", "a.b", "a[0]"]))] = _odd(draw)
        case "add":
            container.append(_odd(draw))
        case "move":
            other, name = draw(st.sampled_from(found))
            container[key] = copy.deepcopy(other[name])
        case _:
            container[key] = _odd(draw)


def _odd(draw: st.DrawFn) -> Any:
    return copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
