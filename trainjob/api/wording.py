"""Translates pydantic's errors for the author of the YAML."""

import difflib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, get_origin

from pydantic_core import ErrorDetails

from trainjob.api.cluster import CONTROLLER, CPUS, DURATION, IMAGE, QUANTITY, RESOURCE_NAME
from trainjob.api.code import REF, REQUIREMENT, SUBFOLDER
from trainjob.api.document import FieldPath, dotted
from trainjob.api.missing_tasks import instead_of
from trainjob.api.notify import SECRET_KEY
from trainjob.api.tracking import ENTRY_POINT, ONE_LINE, WANDB_PROJECT
from trainjob.kinds.function.spec import FUNCTION
from trainjob.redaction import without_secrets
from trainjob.schema.base import StrictModel, fields_of, nested_model
from trainjob.schema.fields import LAYER_NAME
from trainjob.schema.uris import ARCHIVE_URI, DATA_URI, ENDPOINT, FOLDER_URI, GIT_URL, MODEL, PLAIN_ENDPOINT

PATTERNS = {
    RESOURCE_NAME: "lower-case letters, digits, '-' and '.', with a letter or digit at both ends of every part",
    CONTROLLER: "the name of a controller with its domain, such as kueue.x-k8s.io/multikueue",
    DURATION: "a number of seconds, minutes, hours or days, such as 90s, 30m, 6h or 7d",
    QUANTITY: "a number of bytes, such as 500M, 1.5Gi or 8000000000",
    CPUS: "a number of CPU cores, such as 2, 0.5 or 500m",
    IMAGE: "the name of an image, such as registry.example.com/team/trainer:1.0",
    DATA_URI: (
        "a path, or an address that starts with s3://BUCKET, gs://BUCKET, hf://datasets/OWNER/NAME, https://HOST "
        "(without a user) or file:///"
    ),
    FOLDER_URI: "a path, or an address that starts with s3://BUCKET, gs://BUCKET or file:///",
    MODEL: "a name on the Hugging Face hub, a folder, or an address that starts with s3://BUCKET or gs://BUCKET",
    ARCHIVE_URI: "a path, or an address that starts with s3://BUCKET, gs://BUCKET or file:///, of a .tar.gz file",
    GIT_URL: "the address of a repository, such as https://github.com/OWNER/NAME, without a user",
    REF: "a branch, tag or full commit hash",
    SUBFOLDER: "a folder in the repository, without / at its ends",
    REQUIREMENT: "a package as in requirements.txt, such as einops>=0.8, without options",
    PLAIN_ENDPOINT: "the address of a server, such as http://mlflow:5000, without a user and without a query",
    ONE_LINE: "a text of one line",
    WANDB_PROJECT: "a text of one line without the characters / \\ # ? % and :",
    ENTRY_POINT: "the name of an entry point: letters, digits, '_', '.' and '-'",
    ENDPOINT: "the address of a server, such as http://minio:9000, without a user",
    SECRET_KEY: "the name of a key of a Secret: letters, digits, '_', '.' and '-'",
    LAYER_NAME: "the name of a layer of the network, such as q_proj: letters, digits, '_' and '.'",
    FUNCTION: "module:function, such as mypackage.train:train_loop",
}
"""Descriptions of the TrainJob type's regular expressions."""

_MODEL = ("spec", "model")
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping (name: value)",
    "model_type": "a mapping (name: value)",
}
_MUST = {
    "greater_than": "be greater than {gt}",
    "greater_than_equal": "be at least {ge}",
    "less_than": "be less than {lt}",
    "less_than_equal": "be at most {le}",
    "multiple_of": "be a multiple of {multiple_of}",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "too_short": "have at least {min_length} items",
    "too_long": "have at most {max_length} items",
}


def problems_of(error: ErrorDetails, root: type[StrictModel] | None = None) -> Iterator[tuple[FieldPath, str]]:
    """(path, message) of each problem in a pydantic error on a `root`, whose fields it may suggest."""
    if error["type"] == "conflicts":
        for path, message in error.get("ctx", {})["conflicts"]:
            yield (*error["loc"], *path.split(".")), message
    elif error["type"] == "extra_forbidden":
        yield error["loc"], _unknown_field(error["loc"], root) if root else "unknown field"
    else:
        yield error["loc"], _message(error)


def _message(error: ErrorDetails) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind == "literal_error":
        return f"must be {context['expected'].replace(chr(39), '')}, got {show(value)}"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return f"must be {PATTERNS.get(pattern, 'text that matches ' + pattern)}, got {show(value)}"
    if kind in ("string_too_short", "too_short") and not value:
        return "must not be empty"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {show(value)}{_hint(kind, value)}"
    if kind in _MUST:
        found = len(value) if kind.endswith(("_short", "_long")) else show(value)
        limits = {name: f"{limit:g}" if isinstance(limit, float) else limit for name, limit in context.items()}
        return f"must {_MUST[kind].format(**limits)}, got {found}"
    return error["msg"].removeprefix("Value error, ")


def _hint(kind: str, value: Any) -> str:
    if kind == "list_type" and isinstance(value, str) and re.fullmatch(r"[\w.-]+", value):
        return f": write [{value}]"
    if kind == "string_type" and isinstance(value, bool):
        return "; put it in quotes (without them YAML reads y, n, yes, no, on and off as true and false)"
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(value, str) and _reads_as(kind, value):
        return "; remove the quotes"
    return ""


def _reads_as(kind: str, text: str) -> bool:
    if kind == "bool_type":
        return text in ("true", "false")
    try:
        (int if kind == "int_type" else float)(text)
    except ValueError:
        return False
    return True


def show(value: Any) -> str:
    """A value in YAML notation, on one line, shortened."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(without_secrets(value) if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:50]}… ({len(str(value))} characters)"


def model_at(path: FieldPath, root: type[StrictModel]) -> type[StrictModel]:
    """The model in the field at `path`."""
    model = root
    for name in path:
        if isinstance(name, str) and (info := fields_of(model).get(name)):
            model = nested_model(info.annotation) or model
    return model


def _unknown_field(path: FieldPath, root: type[StrictModel]) -> str:
    name, known = str(path[-1]), fields_of(model_at(path[:-1], root))
    by_bare_name = {_bare(field): field for field in known}
    if instead := instead_of(_bare(name)):
        return f"unknown field: {instead}"
    by_singular = {_singular(field): field for field in known}
    if _bare(name) not in by_bare_name and (field := by_singular.get(_singular(name))):
        return f"unknown field; did you mean {field}?"
    close = difflib.get_close_matches(_bare(name), by_bare_name, n=1)
    elsewhere = [path for path in _all_fields(root) if _singular(str(path[-1])) == _singular(name)]
    if kinds := _other_kinds(path, elsewhere):
        return f"is for {joined(kinds)}"
    if elsewhere and not close:
        elsewhere.sort(key=lambda path: path[:2] != ("spec", "dataset"))
        return f"unknown field here; did you mean {' or '.join(map(dotted, elsewhere[:3]))}?"
    if close:
        return f"unknown field; did you mean {by_bare_name[close[0]]}?"
    return f"unknown field; allowed: {', '.join(known)}" if known else "unknown field; nothing can be set here"


def _other_kinds(path: FieldPath, elsewhere: list[FieldPath]) -> list[str]:
    """The kinds of model, other than that of `path`, whose sections have its field at the same place."""
    in_model = path[:2] == _MODEL and len(path) > len(_MODEL) + 1
    return [str(found[2]) for found in elsewhere if in_model and found[:2] == _MODEL and found[3:] == path[3:]]


def joined(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _bare(name: str) -> str:
    """batch_size, batch-size and batchsize all mean batchSize."""
    return name.replace("_", "").replace("-", "").lower()


def _singular(name: str) -> str:
    return _bare(name).removesuffix("s")


@cache
def _all_fields(root: type[StrictModel]) -> list[FieldPath]:
    paths: list[FieldPath] = []
    for name, info in fields_of(root).items():
        paths.append((name,))
        if model := nested_model(info.annotation):
            step = (name, "NAME") if get_origin(info.annotation) is dict else (name,)
            paths += [(*step, *path) for path in _all_fields(model)]
    return paths
