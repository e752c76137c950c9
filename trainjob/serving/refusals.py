"""The words of answers that refuse a request: where it is wrong, what is wrong, and what to send instead."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from trainjob.errors import RowError, UserError

MAX_PROBLEMS = 10
"""Errors that an answer lists."""
MAX_EXAMPLE_CHARACTERS = 500
"""Characters of an example of a request in an answer."""
_OF_STRUCTURE = ("json_invalid", "missing", "extra_forbidden", "model_attributes_type", "structure")
_TYPES: dict[Any, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def one_per_line(problems: Iterable[str]) -> str:
    """The first problems, one a line."""
    lines = list(problems)
    more = len(lines) - MAX_PROBLEMS
    return "\n".join([*islice(lines, MAX_PROBLEMS), *([f"and {more:,} more"] if more > 0 else [])])


def of_request(error: RequestValidationError, fields: Sequence[str], example: Mapping[str, Any]) -> str:
    """The errors of a request, which should have these fields, without its content, which may be large; with an example
    of a request where its structure is wrong."""
    problems = error.errors()
    found = one_per_line(f"{_path(each)}: {_problem(each, fields)}" for each in problems)
    if not any(map(_is_of_structure, problems)):
        return found
    shown = json.dumps(example, ensure_ascii=False)
    return f"{found}\n" + (
        f"send, for example, {shown}" if len(shown) <= MAX_EXAMPLE_CHARACTERS else "/docs has an example"
    )


def of_row(field: str, index: int, error: UserError) -> str:
    """The error about a row of a request's list `field`."""
    row = f"{field}[{index}]"
    if isinstance(error, RowError) and error.cell is not None:
        column, problem = error.cell
        return f"{row}.{column}: {problem}; correct it, or leave it empty (null in JSON)"
    return f"{row}: {error}"


def of_path(status: int, request: Request) -> str | None:
    """The error about a request that the framework itself refuses."""
    if status == 400:
        return "the request: its JSON is nested too deeply, or has a number with too many digits"
    if status == 404:
        return f"there is no {request.url.path}: send rows to /predict, or see /docs"
    if status == 405:
        return f"{request.url.path} does not take {request.method}: send rows with POST to /predict, or see /docs"
    return None


def _is_of_structure(problem: Mapping[str, Any]) -> bool:
    if problem["type"] == "missing" and len(problem["loc"]) > 2:  # a column
        return False
    return problem["type"] in _OF_STRUCTURE


def _path(problem: Mapping[str, Any]) -> str:
    """The path of an error in the request, such as rows[3].title; if the request is not JSON, the position in it."""
    path: Sequence[str | int] = problem["loc"][1:] if problem["type"] != "json_invalid" else ()
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the request"


def _problem(problem: Mapping[str, Any], fields: Sequence[str]) -> str:
    found, depth = _TYPES.get(type(problem.get("input")), "null"), len(problem["loc"])
    match problem["type"]:
        case "json_invalid":
            return f"is not JSON, from character {problem['loc'][1] + 1:,} on: {problem['ctx']['error']}"
        case "missing":
            missing = "is missing: send null if there is no value" if depth > 2 else "is missing"
            return "is empty" if depth == 1 else missing
        case "extra_forbidden":
            return f"is not known; a request has {' or '.join(fields)}"
        case "list_type":
            return f"must be a list, not {found}"
        case "string_type":
            return f"must be text, not {found}"
        case "model_attributes_type":
            return f"must be an object{'' if depth == 1 else ' with a value for each column'}, not {found}"
        case "too_short":
            return "is empty: send at least one"
        case "too_long":
            return f"has more than {problem['ctx']['max_length']:,}: send fewer at a time"
        case _:
            return str(problem["msg"]).removeprefix("Value error, ")
