"""Pydantic models → the structural schema that a CustomResourceDefinition needs."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

from pydantic.fields import FieldInfo

from trainjob.api.base import DependsOnModel, StrictModel
from trainjob.api.cluster import KubernetesType
from trainjob.api.wording import fields_of, part_in
from trainjob.crd.kubernetes_types import Schema, kubernetes_schema
from trainjob.crd.rules import rules_of

_KEYS = {
    "Condition": "type",
    "V1EnvVar": "name",
    "V1LocalObjectReference": "name",
    "V1Volume": "name",
    "V1VolumeMount": "mountPath",
}
"""The field that tells the items of a list apart; no two may have the same. Other lists are taken as a whole."""


def spec_schema(model: type[StrictModel]) -> Schema:
    """The schema of a part that people write: with defaults, required fields and rules."""
    leaves = model.model_json_schema()["properties"]
    properties: dict[str, Schema] = {}
    for name, info in fields_of(model).items():
        value = _value_schema(info, leaves[name], spec_schema)
        properties[name] = {**value, "description": description(info), **_default(info)}
    schema: Schema = {"type": "object", "description": class_description(model), "properties": properties}
    if required := [name for name, info in fields_of(model).items() if info.is_required()]:
        schema["required"] = required
    if rules := rules_of(model):
        schema["x-kubernetes-validations"] = [rule.validation() for rule in rules]
    return schema


def status_schema(model: type[StrictModel]) -> Schema:
    """The schema of a part that the cluster writes, bit by bit: every field may be missing, none has a default."""
    leaves = model.model_json_schema()["properties"]
    properties = {
        name: {**_value_schema(info, leaves[name], status_schema), "description": description(info)}
        for name, info in fields_of(model).items()
    }
    return {"type": "object", "description": class_description(model), "properties": properties}


def kubernetes_type(annotation: Any) -> str | None:
    """The class of the `kubernetes` package that a field of this type holds, if it holds one."""
    if isinstance(annotation, KubernetesType):
        return annotation.name
    return next((name for arg in get_args(annotation) if (name := kubernetes_type(arg))), None)


def description(info: FieldInfo) -> str:
    """A field's docstring on one line, or that of the part it holds."""
    part = part_in(info.annotation)
    return " ".join(info.description.split()) if info.description else class_description(part) if part else ""


def class_description(model: type[StrictModel]) -> str:
    """A class's docstring on one line."""
    return " ".join(inspect.cleandoc(model.__doc__ or "").split())


def _value_schema(info: FieldInfo, leaf: Schema, part_schema: Callable[[type[StrictModel]], Schema]) -> Schema:
    schema, part, kind = _plain(leaf), part_in(info.annotation), kubernetes_type(info.annotation)
    if part:
        return _in_list(schema, part_schema(part), part.__name__)
    if kind:
        return _in_list(schema, kubernetes_schema(kind), kind)
    return schema


def _in_list(schema: Schema, item: Schema, name: str) -> Schema:
    """`item` itself or, where `schema` is that of a list, a list of it."""
    if schema.get("type") != "array":
        return item
    if name not in _KEYS:
        return {**schema, "items": item, "x-kubernetes-list-type": "atomic"}
    key = _KEYS[name]
    return {
        **schema,
        "items": {**item, "required": sorted({*item.get("required", ()), key})},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


_SAME = {"type", "enum", "format", "pattern", "minimum", "maximum"} | {
    f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties")
}
"""Keywords that a structural schema has from JSON Schema as they are."""


def _plain(leaf: Schema) -> Schema:
    """Pydantic's JSON schema of a value in the words of a structural schema; null is the same as leaving it out."""
    if "anyOf" in leaf:
        leaf = next(choice for choice in leaf["anyOf"] if choice.get("type") != "null")
    schema = {keyword: value for keyword, value in leaf.items() if keyword in _SAME}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in leaf:
            schema |= {bound: leaf[exclusive], exclusive: True}
    if leaf.get("type") == "integer":
        schema["format"] = "int64"
    if "items" in leaf:
        schema["items"] = _plain(leaf["items"])
    if leaf.get("additionalProperties") is True:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    elif "additionalProperties" in leaf:
        schema["additionalProperties"] = _plain(leaf["additionalProperties"])
    return schema


def _default(info: FieldInfo) -> Schema:
    """The default, where leaving a field out means something; of a part, what its own fields' defaults do not say."""
    depends = any(isinstance(note, DependsOnModel) for note in info.metadata)
    if info.is_required() or depends or info.default in (None, [], {}):
        return {}
    value = info.default
    if isinstance(value, StrictModel):
        value = value.model_dump(by_alias=True, exclude_defaults=True)
    return {"default": value}
