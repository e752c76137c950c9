"""The reference page: every field of a TrainJob, from the same schema as the CRD, with every default."""

import json
from collections.abc import Iterator
from itertools import chain
from textwrap import fill

from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from trainjob.api.trainjob import TrainJobSpec
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.api.tuning import DISTRIBUTIONS, Parameter, Parameters
from trainjob.api.wording import PATTERNS
from trainjob.crd.definition import trainjob_schema
from trainjob.crd.kubernetes_types import Schema
from trainjob.crd.rules import rules_of
from trainjob.crd.schema import kubernetes_type
from trainjob.kinds import KINDS
from trainjob.kinds.facts import WHY_NOT
from trainjob.schema.base import OneOf, StrictModel, fields_of, nested_model

_INTRODUCTION = """\
# TrainJob reference

All fields of `apiVersion: trainjob.dev/v1alpha1`, `kind: TrainJob`, with their types and defaults; `kubectl explain
tj.spec` shows the same. If a type is a link, the field contains the Kubernetes object unchanged. Rules across fields
follow each table.

Generated from the TrainJob type by `python -m trainjob.crd`.
"""
_ABILITIES = ("tuning", "distillation", "compression", "pruning", "sharding", "serving", "cascade")
_ABILITIES_INTRODUCTION = """\
## What each kind of model supports

All kinds train on any number of workers and are compared by `trainjob compare`. All but `function` are scored
by `trainjob evaluate` and applied by `trainjob predict`. `trainjob serve` is for kinds that answer rows; a cascade
(`trainjob predict --cascade`) asks a language model for one class of a text.
"""
_WIDTH = 120
_KUBERNETES = "https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#{}-v1-core"


def reference() -> str:
    """The page, in Markdown."""
    properties = trainjob_schema(defaults_everywhere=True)["properties"]
    sections = [_INTRODUCTION, *_section("spec", TrainJobSpec, properties["spec"])]
    sections += [_abilities()]
    sections += _section("status", TrainJobStatus, properties["status"])
    return "\n".join(sections)


def _abilities() -> str:
    """A table of the kinds of model and what each of them supports."""
    rows = [f"| {' | '.join(['', *_ABILITIES])} |", f"|{'---|' * (len(_ABILITIES) + 1)}"]
    for kind in KINDS.values():
        supported = {
            *kind.abilities,
            *(["serving"] if not (kind.is_users_loop or "generation" in kind.abilities) else []),
            *(["cascade"] if "languageModel" in kind.baselines else []),
        }
        rows.append(
            f"| `model.{kind.field}` | {' | '.join('yes' if each in supported else '' for each in _ABILITIES)} |"
        )
    reasons = [_wrapped(f"- {ability}: {why}.", indent="  ") for ability, why in WHY_NOT.items()]
    return "\n".join([_ABILITIES_INTRODUCTION, *rows, "", "Why not the others:", "", *reasons, ""])


def _section(path: str, model: type[StrictModel], schema: Schema) -> Iterator[str]:
    """A heading and a table of the fields of `model`, then the sections of the models in its fields."""
    yield f"## `{path}`\n\n{_wrapped(schema['description'])}\n"
    fields = fields_of(model)
    if fields:
        yield "| field | type | default | |\n|---|---|---|---|"
        for name, info in fields.items():
            yield _row(name, info, schema["properties"][name], name in schema.get("required", ()))
        yield ""
    if rules := list(dict.fromkeys(_rules(model))):
        yield "\n".join(["Rules:\n", *rules, ""])
    if model is Parameters:
        yield from _distributions(path)
        return
    for name, info in fields.items():
        nested, field = nested_model(info.annotation), schema["properties"][name]
        if nested and fields_of(nested):
            yield from _section(f"{path}.{name}" + "[]" * ("items" in field), nested, field.get("items", field))


def _distributions(path: str) -> Iterator[str]:
    """One section for all of tuning's parameters, whose fields differ only in their bounds."""
    yield f"## `{path}.*`\n\nSet exactly one of the parameter's distributions. Values have the field's own bounds.\n"
    yield "| field | |\n|---|---|"
    yield from (f"| `{to_camel(name)}` | {text} |" for name, text in DISTRIBUTIONS.items())
    yield ""


def _rules(model: type[StrictModel]) -> Iterator[str]:
    for rule in chain.from_iterable(found.parts for found in rules_of(model)):
        yield _wrapped(f"- `{rule.field}` {rule.message}" if rule.field else f"- {rule.message}", indent="  ")


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _row(name: str, info: FieldInfo, schema: Schema, required: bool) -> str:
    default = "required" if required else f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
    cells = [f"`{name}`", _type(info, schema), default, schema["description"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(info: FieldInfo, schema: Schema) -> str:
    """A field's type as the page names it."""
    if kind := kubernetes_type(info.annotation):
        title = kind.removeprefix("V1")
        text = f"[{title}]({_KUBERNETES.format(title.lower())})"
        return f"list of {text}" if schema["type"] == "array" else text
    nested = nested_model(info.annotation)
    if nested and issubclass(nested, Parameter):
        return ", ".join(f"`{name}`" for name in fields_of(nested))
    return "choice" if nested and issubclass(nested, OneOf) and "items" not in schema else _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_plain_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map to {_plain_type(schema['additionalProperties'])}"
    if "pattern" in schema:
        return PATTERNS.get(schema["pattern"], f"string like `{schema['pattern']}`")
    name = "time" if schema.get("format") == "date-time" else schema["type"]
    return ", ".join([name, *_bounds(schema)])


def _bounds(schema: Schema) -> Iterator[str]:
    for bound, sign in (("minimum", ">"), ("maximum", "<")):
        if bound in schema:
            equals = "" if f"exclusive{bound.title()}" in schema else "="
            yield f"{sign}{equals} {schema[bound]}"
