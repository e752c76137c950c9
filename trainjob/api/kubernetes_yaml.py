"""YAML as Kubernetes reads and writes it."""

import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.1 as Kubernetes reads it: 1e-4 is a number, y is true, dates and base-60 numbers are text.

    Source: resolve.go of sigs.k8s.io/yaml/goyaml.v2.
    """

    yaml_implicit_resolvers = {}
    bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


class _Dumper(yaml.SafeDumper):
    """Quotes texts that PyYAML would not quote but Kubernetes would read as another type, such as y and 1e3."""


TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "bool": (r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
    "float": (r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    "merge": (r"<<", "<"),
}
for _name, (_pattern, _first) in _SCALARS.items():
    for _class in (Loader, _Dumper):
        _class.add_implicit_resolver(TAG + _name, re.compile(f"^(?:{_pattern})$"), list(_first))
KNOWN_TAGS = {TAG + name for name in ("map", "seq", "str", "bool", "null", "int", "float")}


def as_yaml_file(*documents: Any, in_one_line: bool = False) -> str:
    """Writes YAML documents from which trainjob and Kubernetes read the same values. Raises YAMLError for values that
    YAML cannot represent."""
    style: dict[str, Any] = {"default_flow_style": True, "width": 10**9} if in_one_line else {}
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **style)


def root_nodes(text: str) -> Iterator[yaml.Node]:
    """The root nodes of the non-empty documents."""
    loader = Loader(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            if root is not None and root.tag != TAG + "null":
                yield root
    except (ValueError, OverflowError):  # such as "\\UFFFFFFFF"
        problem = "an escape sequence or a number that is out of range"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=loader.get_mark()) from None


def json_number(value: int | float) -> int | float:
    """The number as an API server receives it: JSON does not distinguish 10.0 from 10, and integers have 64 bits.
    Raises OverflowError if it is out of range."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if isinf(value):
        raise OverflowError
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def explain(error: yaml.MarkedYAMLError) -> str:
    """PyYAML's message, with advice for common mistakes."""
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return f"{problem}; indent with blanks, not tabs"
    if "mapping values are not allowed" in problem:
        return f"{problem}; look for a wrong indentation, or text with a colon that needs quotes"
    if "could not find expected ':'" in problem:
        return f"{problem}; a field is written `name: value`"
    if error.context and error.context_mark and error.context_mark is not error.problem_mark:
        return f"{problem} ({error.context} that starts on line {error.context_mark.line + 1})"
    return problem
