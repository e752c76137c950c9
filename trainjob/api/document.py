"""Parses YAML text into plain data, with the line of each field."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from trainjob.api.kubernetes_yaml import KNOWN_TAGS, TAG, Loader, explain, json_number, root_nodes
from trainjob.errors import UserError

FieldPath = tuple[str | int, ...]
"""The path of a field, such as ("spec", "dataset", "text", 0)."""

MAX_FIELDS = 50_000
"""More than any TrainJob that an API server accepts; stops YAML whose aliases multiply."""


class Position(NamedTuple):
    """The position of a field in its source; positions sort in reading order."""

    order: int
    text: str


class Problem(NamedTuple):
    """One problem in a document."""

    position: Position
    path: FieldPath
    message: str

    def __str__(self) -> str:
        text = "  ".join(part for part in (self.position.text, dotted(self.path), self.message) if part)
        return " ".join(text.splitlines())  # a name or an override may have several


class InvalidDocument(UserError):
    """A file, with its overrides, is not valid; the message has one line per problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: problem.position)
        super().__init__("\n".join(dict.fromkeys(map(str, self.problems))))


@dataclass
class Document:
    """JSON-compatible data (no dates, string keys), and the position of each field."""

    data: Any = None
    positions: dict[FieldPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def position(self, path: FieldPath) -> Position:
        """The position of the field at `path` or, if it is missing, of the mapping that should contain it."""
        while path not in self.positions:
            path = path[:-1]
        return self.positions[path]


def value_at(data: Any, path: Sequence[str]) -> Any:
    """The value of the field at `path`; None if it or a mapping above it is missing."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def dotted(path: FieldPath) -> str:
    """("spec", "dataset", "text", 0) → spec.dataset.text[0]"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def parse(
    text: str, position: Callable[[int, int | None], Position], at: FieldPath = (), kind: str | None = None
) -> Document:
    """Parses one YAML document, whose root is the field `at`; of several, the only one of a `kind`. `position` creates
    a Position from a line and, if known, a column.

    Raises InvalidDocument if the text is not YAML or not one document; lesser faults go into `Document.problems`.
    """

    def fail(line: int, column: int | None, message: str) -> InvalidDocument:
        return InvalidDocument([Problem(position(line, column), at, message)])

    with _reporting_faults(text, fail):
        roots = list(root_nodes(text))
        if len(roots) > 1:
            roots = [_only_one(roots, kind, fail)]
        return _document(roots[0] if roots else None, position, at)


def parse_all(text: str, position: Callable[[int, int | None], Position]) -> list[Document]:
    """Parses all YAML documents that are not empty. Raises InvalidDocument."""

    def fail(line: int, column: int | None, message: str) -> InvalidDocument:
        return InvalidDocument([Problem(position(line, column), (), message)])

    with _reporting_faults(text, fail):
        return [_document(root, position, ()) for root in root_nodes(text)]


def _document(root: yaml.Node | None, position: Callable[[int, int | None], Position], at: FieldPath) -> Document:
    reader = _Reader(lambda line: position(line, None))
    reader.document.positions[at] = position(root.start_mark.line + 1 if root is not None else 1, None)
    reader.document.data = reader.value(root, at) if root is not None else None
    return reader.document


@contextmanager
def _reporting_faults(text: str, fail: Callable[[int, int | None, str], InvalidDocument]) -> Generator[None]:
    """Turns the parser's errors in the block into an InvalidDocument."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, None)
        raise fail(line, column, f"not valid YAML: {explain(error)}") from None
    except yaml.reader.ReaderError as error:
        line, character = text.count("\n", 0, error.position) + 1, ord(text[error.position])
        raise fail(line, None, f"not valid YAML: the character U+{character:04X} is not allowed") from None
    except (RecursionError, _TooLarge):
        raise fail(1, None, "the YAML is nested too deeply or too large") from None


def _only_one(
    roots: list[yaml.Node], kind: str | None, fail: Callable[[int, int | None, str], InvalidDocument]
) -> yaml.Node:
    if kind is None:
        raise fail(roots[1].start_mark.line + 1, None, "a second YAML document; only one is expected")
    found = [node for node in roots if _kind(node) == kind]
    if not found:
        raise fail(1, None, f"none of its documents is a {kind}: {', '.join(map(_kind, roots))}")
    if len(found) > 1:
        first, second = (node.start_mark.line + 1 for node in found[:2])
        raise fail(second, None, f"a file may hold one {kind}, and one begins on line {first}: write a file for each")
    return found[0]


class _TooLarge(Exception):
    pass


class _Reader:
    """Converts composed nodes into data, and records positions and problems."""

    def __init__(self, position: Callable[[int], Position]) -> None:
        self.position = position
        self.loader = Loader("")
        self.document = Document()

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        if len(self.document.positions) > MAX_FIELDS:
            raise _TooLarge
        if node.tag not in KNOWN_TAGS:
            self.problem(node, path, f"the YAML tag {node.tag.replace(TAG, '!!')} is not supported")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.document.positions[(*path, index)] = self.position(item.start_mark.line + 1)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == TAG + "merge":
                merged = self.merge(value_node, path) | merged
                continue
            key = self.key(key_node, path)
            here = (*path, key)
            if key in own:
                first = self.document.positions[here].text
                self.problem(key_node, here, f"is given twice; the first one is at {first}")
            self.document.positions[here] = self.position(key_node.start_mark.line + 1)
            own[key] = self.value(value_node, here)
        return merged | own

    def merge(self, node: yaml.Node, path: FieldPath) -> dict[str, Any]:
        """The entries merged by `<<: *base` or `<<: [*base, *other]`; earlier bases win."""
        merged: dict[str, Any] = {}
        for base in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(base, yaml.MappingNode):
                merged = self.mapping(base, path) | merged
            else:
                self.problem(base, path, "<< takes a mapping or a list of mappings")
        return merged

    def key(self, node: yaml.Node, path: FieldPath) -> str:
        is_plain = isinstance(node, yaml.ScalarNode) and node.tag in KNOWN_TAGS
        key = self.scalar(node, path) if is_plain else None
        if isinstance(key, str):
            return key
        name = json.dumps(key)
        if key is None:
            self.problem(node, path, "a field's name must be text")
        elif name != node.value:
            self.problem(node, path, f"YAML reads the name {_shortened(node.value)} as {name}: put it in quotes")
        return name

    def scalar(self, node: yaml.Node, path: FieldPath) -> Any:
        try:
            value = self.loader.construct_object(node)
            if isinstance(value, str):
                value.encode()  # fails for half of a surrogate pair that is written as an escape
            return json_number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        except (ValueError, OverflowError, LookupError, yaml.YAMLError):
            tag = node.tag.replace(TAG, "!!")
            self.problem(node, path, f"{_shortened(node.value)} does not fit the YAML tag {tag}")
            return None

    def problem(self, node: yaml.Node, path: FieldPath, message: str) -> None:
        self.document.problems.append(Problem(self.position(node.start_mark.line + 1), path, message))


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:50]!r}… ({len(text)} characters)"


def _kind(node: yaml.Node) -> str:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    kinds = (value.value for key, value in pairs if key.value == "kind" and isinstance(value, yaml.ScalarNode))
    return next(kinds, "one without a kind")
