"""Pydantic models → the structural schema that a CustomResourceDefinition needs."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from pydantic.fields import FieldInfo

from trainjob.api.cluster import KubernetesType
from trainjob.api.training_status import MAX_ENTRIES, MAX_KEY_CHARACTERS, MAX_TEXT_CHARACTERS
from trainjob.crd.kubernetes_types import Schema, kubernetes_schema
from trainjob.crd.rule import MergedRule, Rule
from trainjob.crd.rules import rules_of, rules_of_value
from trainjob.schema.base import OneOf, StrictModel, depends_on_spec, fields_of, nested_model

_LIST_KEYS = {
    "Condition": "type",
    "V1EnvVar": "name",
    "V1LocalObjectReference": "name",
    "V1Volume": "name",
    "V1VolumeMount": "mountPath",
}
"""The field that distinguishes the items of a list, for each type of item; other lists are replaced as a whole."""


def spec_schema(model: type[StrictModel], defaults_everywhere: bool = False) -> Schema:
    """The schema of a model that people write: with defaults, required fields and rules.

    An object that may be written as `{}` has no defaults inside, unless `defaults_everywhere`: trainjob fills them in
    when it reads the spec. Whoever creates an object owns the defaults that the API server fills in, and once a
    server-side apply takes over, the API server removes them: of `{}` nothing would be left, which it refuses.
    """
    return _spec_schema(model, defaults_everywhere, has_defaults=True)


def _spec_schema(model: type[StrictModel], defaults_everywhere: bool, has_defaults: bool) -> Schema:
    whole = model.model_json_schema()
    leaves, properties = whole["properties"], dict[str, Schema]()
    for name, info in fields_of(model).items():
        inner = partial(
            _spec_schema,
            defaults_everywhere=defaults_everywhere,
            has_defaults=defaults_everywhere or not _may_be_empty(info),
        )
        default = _default(info) if has_defaults else {}
        value = _with_rules(_value_schema(info, leaves[name], inner), rules_of_value(model, name))
        properties[name] = {**value, **_described(description(info)), **default}
    schema: Schema = {"type": "object", "description": class_description(model), "properties": properties}
    schema |= {limit: whole[limit] for limit in ("minProperties", "maxProperties") if limit in whole}
    if required := [name for name, info in fields_of(model).items() if info.is_required()]:
        schema["required"] = required
    return _with_rules(schema, rules_of(model))


def _with_rules(schema: Schema, rules: Sequence[Rule | MergedRule]) -> Schema:
    return schema | {"x-kubernetes-validations": [rule.validation() for rule in rules]} if rules else schema


def _may_be_empty(info: FieldInfo) -> bool:
    """Whether a field without a default holds an object that may be written as `{}`."""
    model = nested_model(info.annotation)
    if model is None or issubclass(model, OneOf) or info.default is not None:
        return False
    return not any(field.is_required() for field in fields_of(model).values())


def status_schema(model: type[StrictModel]) -> Schema:
    """The schema of a model that the operator writes step by step: every field may be missing, none has a default."""
    return _without_defaults(model, status_schema)


def report_schema(model: type[StrictModel]) -> Schema:
    """The schema of a model that a pod writes: limits the size of texts, maps and lists, and requires the fields that
    the operator depends on."""
    schema = _without_defaults(model, report_schema)
    schema["properties"] = {name: _limited(value) for name, value in schema["properties"].items()}
    if required := [name for name, info in fields_of(model).items() if info.is_required()]:
        schema["required"] = required
    return schema


def _without_defaults(model: type[StrictModel], nested_schema: Callable[[type[StrictModel]], Schema]) -> Schema:
    leaves = model.model_json_schema()["properties"]
    properties = {
        name: {**_value_schema(info, leaves[name], nested_schema), "description": description(info)}
        for name, info in fields_of(model).items()
    }
    return {"type": "object", "description": class_description(model), "properties": properties}


_SHORT_KEYS = {
    "rule": f"self.all(key, size(key) <= {MAX_KEY_CHARACTERS})",
    "message": f"may not have keys longer than {MAX_KEY_CHARACTERS} characters",
}
"""Structural schemas have no keyword for the keys of a map."""


def _limited(value: Schema) -> Schema:
    if value["type"] == "string" and not value.keys() & {"enum", "format"}:
        return {**value, "maxLength": MAX_TEXT_CHARACTERS}
    if value["type"] == "array":
        return {**value, "maxItems": MAX_ENTRIES, "items": _limited(value["items"])}
    if "additionalProperties" in value:
        return {
            **value,
            "maxProperties": MAX_ENTRIES,
            "additionalProperties": _limited(value["additionalProperties"]),
            "x-kubernetes-validations": [_SHORT_KEYS],
        }
    return value


def kubernetes_type(annotation: Any) -> str | None:
    """The class of the `kubernetes` package that a field of this type holds, or None."""
    if isinstance(annotation, KubernetesType):
        return annotation.name
    return next((name for arg in get_args(annotation) if (name := kubernetes_type(arg))), None)


def description(info: FieldInfo) -> str:
    """A field's docstring on one line, or that of the model that it holds."""
    nested = nested_model(info.annotation)
    return " ".join(info.description.split()) if info.description else class_description(nested) if nested else ""


def _described(text: str) -> Schema:
    return {"description": text} if text else {}


def class_description(model: type[StrictModel]) -> str:
    """A class's docstring on one line."""
    return " ".join(inspect.cleandoc(model.__doc__ or "").split())


def _value_schema(info: FieldInfo, leaf: Schema, nested_schema: Callable[[type[StrictModel]], Schema]) -> Schema:
    schema, nested, kind = _structural(leaf), nested_model(info.annotation), kubernetes_type(info.annotation)
    if nested:
        return _in_list(schema, nested_schema(nested), nested.__name__)
    if kind:
        return _in_list(schema, kubernetes_schema(kind), kind)
    return schema


def _in_list(schema: Schema, item: Schema, name: str) -> Schema:
    """The schema of one `item`, or of a list of items if `schema` is a list's."""
    if schema.get("type") != "array":
        return item
    if name not in _LIST_KEYS:
        return {**schema, "items": item, "x-kubernetes-list-type": "atomic"}
    key = _LIST_KEYS[name]
    return {
        **schema,
        "items": {**item, "required": sorted({*item.get("required", ()), key})},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


_COMMON_KEYWORDS = {"type", "enum", "format", "pattern", "minimum", "maximum"} | {
    f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties")
}
"""Keywords that mean the same in JSON Schema and in a structural schema."""


def _structural(leaf: Schema) -> Schema:
    """The structural schema for pydantic's JSON schema of a value; null means the same as a missing field."""
    if "anyOf" in leaf:
        choices = [choice for choice in leaf["anyOf"] if choice.get("type") != "null"]
        if len(choices) > 1:
            return _of_several_types(choices)
        leaf = choices[0]
    schema = {keyword: value for keyword, value in leaf.items() if keyword in _COMMON_KEYWORDS}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in leaf:
            schema |= {bound: leaf[exclusive], exclusive: True}
    if leaf.get("type") == "integer":
        schema["format"] = "int64"
    if "items" in leaf:
        schema["items"] = _structural(leaf["items"])
    if leaf.get("uniqueItems"):
        schema["x-kubernetes-list-type"] = "set"
    if leaf.get("additionalProperties") is True:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    elif "additionalProperties" in leaf:
        schema["additionalProperties"] = _structural(leaf["additionalProperties"])
    return schema


def _of_several_types(choices: list[Schema]) -> Schema:
    """A number or text: keywords about numbers say nothing of text, and the other way round.

    Kubernetes has a type for whole numbers or text only; others can have no type, so what else there is is excluded.
    """
    kinds = {choice["type"] for choice in choices}
    merged = {keyword: value for choice in choices for keyword, value in _structural(choice).items()}
    keywords = {keyword: value for keyword, value in merged.items() if keyword not in ("type", "format")}
    if kinds == {"integer", "string"}:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            **keywords,
        }
    assert kinds == {"number", "string"}
    no_others = {"not": {"enum": [True, False]}, "minItems": 1, "maxItems": 0, "minProperties": 1, "maxProperties": 0}
    return {"x-kubernetes-preserve-unknown-fields": True, **no_others, **keywords}


def _default(info: FieldInfo) -> Schema:
    """The default of a field, if it has one; of a model only what its own fields' defaults do not say."""
    depends = depends_on_spec(info)
    if info.is_required() or depends or info.default in (None, [], {}):
        return {}
    value = info.default
    if isinstance(value, StrictModel):
        value = value.model_dump(by_alias=True, exclude_defaults=True)
    return {"default": value}
