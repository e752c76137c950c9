"""Loads a TrainJob from a YAML file, or reports all its problems at once."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainjob.api.defaults import with_defaults
from trainjob.api.document import (
    Document,
    FieldPath,
    InvalidDocument,
    Position,
    Problem,
    parse,
    value_at,
)
from trainjob.api.earlier import as_written_now
from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.api.names import KIND
from trainjob.api.overrides import apply_overrides
from trainjob.api.trainjob import TrainJob
from trainjob.api.wording import model_at, problems_of, show
from trainjob.kinds import KINDS
from trainjob.schema.base import StrictModel, fields_of, nested_model
from trainjob.schema.uris import PATH

MAX_BYTES = 3 * 2**20
"""The largest request that an API server accepts."""

MAX_PROBLEMS = 100
"""Only the first problems of a file are reported."""

PATHS = (
    *(
        ("spec", "dataset", rows, name)
        for rows in ("train", "validation", "test", "unlabelled")
        for name in ("uri", "uris")
    ),
    ("spec", "code", "uri"),
    ("spec", "training", "distillation", "teacher"),
    ("spec", "storage", "uri"),
    *(kind.path_of_pretrained for kind in KINDS.values()),
)
"""Fields that may hold paths."""

M = TypeVar("M", bound=StrictModel)


def load_trainjob(path: Path, overrides: Sequence[str] = ()) -> TrainJob:
    """Loads the TrainJob in the YAML file `path`, with `overrides` such as "spec.training.epochs=3" applied.

    As strict as an API server: text is not accepted as a number, and a null field counts as left out. Relative paths
    become absolute, relative to the file's folder, and defaults that depend on the model are filled in.

    Raises InvalidDocument: one line `FILE:LINE  field  what is wrong` for each problem.
    """
    return trainjob_in(read_text(path), path, overrides)


def trainjob_in(text: str, path: Path, overrides: Sequence[str] = ()) -> TrainJob:
    """Does the same for the text of the file: a pipe can be read only once."""
    return _loaded(parse(text, partial(position_in, path), kind=KIND), Path(os.path.abspath(path)).parent, overrides)


def trainjob_of(content: Mapping[str, Any], overrides: Sequence[str] = (), folder: Path | None = None) -> TrainJob:
    """Does the same for a file's content. Relative paths start at `folder`, by default the current one."""
    return _loaded(parse(as_text(content), position_in_content), folder or Path.cwd(), overrides)


def _loaded(document: Document, folder: Path, overrides: Sequence[str]) -> TrainJob:
    _check_is_trainjob(document)
    apply_overrides(document, overrides)
    data = without_nulls(document.data, TrainJob)
    _make_paths_absolute(data, folder)
    return with_defaults(checked(data, document, TrainJob))


def with_overrides(text: str, name: str, overrides: Sequence[str]) -> TrainJob:
    """The TrainJob in a run's YAML `text`, with `overrides` applied; errors call it `name`. Raises InvalidDocument."""
    document = parse(text, lambda line, _: Position(line, f"{name}:{line}"))
    apply_overrides(document, overrides)
    return checked(without_nulls(as_written_now(document.data), TrainJob), document, TrainJob)


def read_document(path: Path) -> Document:
    """The only YAML document in a file. Raises InvalidDocument."""
    return parse(read_text(path), partial(position_in, path))


def as_text(content: Mapping[str, Any]) -> str:
    """The content of a file as YAML. Raises InvalidDocument for values that YAML does not have."""
    try:
        return as_yaml_file(dict(content))
    except yaml.YAMLError as error:
        reason = " ".join(str(part) for part in error.args)
        problem = Problem(Position(0, KIND), (), f"has a value that YAML does not have: {reason}")
        raise InvalidDocument([problem]) from None


def position_in_content(line: int, _: int | None) -> Position:
    """A position in content that is in no file."""
    return Position(line, KIND)


def position_in(path: Path, line: int, column: int | None) -> Position:
    """A position in the file `path`."""
    return Position(line, f"{path}:{line}" + (f":{column}" if column else ""))


def checked(data: Any, document: Document, model: type[M]) -> M:
    """Validates a document's `data` as a `model`. Raises InvalidDocument with one line for each problem of either, up
    to `MAX_PROBLEMS`."""
    found = None
    try:
        found = model.model_validate(data, strict=True, by_alias=True, by_name=False)
    except ValidationError as errors:
        if errors.error_count() > MAX_PROBLEMS:
            message = f"{errors.error_count()} problems, of which these are the first {MAX_PROBLEMS}:"
            document.problems.append(Problem(document.position(()), (), message))
        for error in errors.errors(include_url=False)[:MAX_PROBLEMS]:
            document.problems += _problems(error, document, model)
    if found is None or document.problems:
        raise InvalidDocument(document.problems)
    return found


def read_text(path: Path) -> str:
    """A file of at most `MAX_BYTES`, or standard input for `-`. Raises InvalidDocument."""

    def fail(message: str) -> InvalidDocument:
        return InvalidDocument([Problem(Position(0, str(path)), (), message)])

    try:
        if path.is_dir():
            raise fail("is a folder; give a YAML file")
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise fail(f"is larger than {MAX_BYTES >> 20} MiB")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail(f"is not UTF-8 text: byte 0x{error.object[error.start]:02X} at offset {error.start}") from None
    except FileNotFoundError:
        raise fail("no such file") from None
    except OSError as error:
        raise fail(f"cannot be read: {error.strerror}") from None


def _check_is_trainjob(document: Document) -> None:
    """Rejects documents that are not TrainJobs, for which a list of unknown fields would not help."""
    data = document.data
    if data is None:
        raise InvalidDocument([Problem(document.position(()), (), "the file is empty; a TrainJob is expected")])
    if not isinstance(data, dict):
        message = f"expected a TrainJob (apiVersion, kind, metadata, spec), got {show(data)}"
        raise InvalidDocument([Problem(document.position(()), (), message)])
    for name in ("kind", "apiVersion"):
        (expected,) = get_args(fields_of(TrainJob)[name].annotation)
        if name in data and data[name] != expected:
            message = f"must be {expected}, got {show(data[name])}"
            raise InvalidDocument([Problem(document.position((name,)), (name,), message)])


def without_nulls(data: Any, part: type[StrictModel]) -> Any:
    """A copy without the null fields of a model, as an API server stores it."""
    if isinstance(data, list):
        return [without_nulls(item, part) for item in data]
    if not isinstance(data, dict):
        return data
    fields = fields_of(part)
    copy: dict[str, Any] = {}
    for name, value in data.items():
        inner = nested_model(fields[name].annotation) if name in fields else None
        if value is not None or name not in fields:
            copy[name] = without_nulls(value, inner) if inner else value
    return copy


def _make_paths_absolute(data: dict[str, Any], folder: Path) -> None:
    for *parents, name in PATHS:
        part = value_at(data, parents)
        if isinstance(part, dict) and name in part:
            part[name] = _absolute(part[name], folder, may_be_on_hub=name == "pretrained")


def _absolute(value: Any, folder: Path, may_be_on_hub: bool) -> Any:
    """Resolves a relative path, or each in a list, against the folder; other values are unchanged."""
    if isinstance(value, list):
        return [_absolute(each, folder, may_be_on_hub) for each in value]
    if not isinstance(value, str) or not re.fullmatch(PATH, value):
        return value
    on_hub = may_be_on_hub and not value.startswith(("./", "../")) and not (folder / value).is_dir()
    return value if on_hub else os.path.abspath(folder / value)


def _problems(error: ErrorDetails, document: Document, model: type[StrictModel]) -> Iterator[Problem]:
    for path, message in problems_of(error, model):
        if error["type"] == "one_of":
            message += _hint_at_nulls(document.data, path, model_at(path, model))
        yield Problem(document.position(path), path, message)


def _hint_at_nulls(data: Any, path: FieldPath, choice: type[StrictModel]) -> str:
    """`encoder:` with nothing after it is null, so it counts as left out."""
    for name in path:
        data = data[name]
    fields = fields_of(choice)
    empty = [name for name, value in data.items() if value is None and nested_model(fields[name].annotation)]
    return f"; write `{empty[0]}: {{}}` for its defaults (nothing after the colon means left out)" if empty else ""
