"""Schemas of Kubernetes' own types, such as Volume, from the classes of the `kubernetes` package."""

import inspect
import re
from typing import Any

from kubernetes import client

Schema = dict[str, Any]

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
"""The schema of a resource.Quantity, as in every CRD with a pod template."""

_QUANTITIES = {"divisor", "limits", "requests", "sizeLimit"}
"""Fields that hold quantities; the classes declare them as strings."""
_INT64 = {
    "defaultUser",
    "fsGroup",
    "expirationSeconds",
    "runAsGroup",
    "runAsUser",
    "supplementalGroups",
    "tolerationSeconds",
    "user",
}
"""The fields with 64 bits; Kubernetes' classes declare 32-bit integers alike."""
_ONLY: dict[str, tuple[str, ...]] = {"V1ObjectMeta": ("annotations", "labels")}
"""The only fields that a class may have here: a volume claim's template has no other metadata."""
_MAX_ID = 2**31 - 1
_ID: Schema = {"minimum": 0, "maximum": _MAX_ID}
_LIMITS: dict[tuple[str, str], Schema] = {
    ("V1Volume", "name"): {"maxLength": 63},  # the API server needs it to estimate the cost of a rule
    ("V1EnvVar", "name"): {"pattern": "^[-._a-zA-Z][-._a-zA-Z0-9]*$"},
    ("V1Toleration", "operator"): {"enum": ["", "Exists", "Equal"]},
    ("V1Toleration", "effect"): {"enum": ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]},
    **{("V1PodSecurityContext", field): _ID for field in ("runAsUser", "runAsGroup", "fsGroup")},
}
"""Rules that Kubernetes checks only when a pod is created, by class and field."""
_MAX_FIELDS = {"V1EnvVar": 2, "V1Volume": 2}
"""Classes with a name and one of several other fields."""
_SCALARS: dict[str, Schema] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def kubernetes_schema(name: str, described: bool = True) -> Schema:
    """The structural schema of a class of the `kubernetes` package, such as "V1EnvVar".

    If `described`, it and its fields have descriptions. Those of the classes inside would be an eighth of the CRD, and
    `kubectl explain pod.spec` shows them.
    """
    model: Any = getattr(client, name)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for attribute in _ONLY.get(name) or model.attribute_map:
        info, field = model.model_fields[attribute], model.attribute_map[attribute]
        kind = model.openapi_types[attribute]
        properties[field] = _type_schema(kind, field) | _LIMITS.get((name, field), {})
        if described:
            text = info.description or _description(getattr(client, kind, None)) or _as_sentence(field)
            properties[field] = {**properties[field], "description": _first_sentence(text)}
        if info.is_required():
            required.append(field)
    schema: Schema = {"type": "object", "properties": properties}
    if described:
        schema["description"] = _description(model)
    if name in _MAX_FIELDS:
        schema["maxProperties"] = _MAX_FIELDS[name]
    return {**schema, "required": required} if required else schema


def _type_schema(kind: str, field: str) -> Schema:
    """The schema of a type such as "str", "List[V1KeyToPath]" or "Dict[str, str]"."""
    if match := re.fullmatch(r"List\[(.+)\]", kind):
        return {"type": "array", "items": _type_schema(match[1], field)}
    if match := re.fullmatch(r"Dict\[str, (.+)\]", kind):
        return {"type": "object", "additionalProperties": _type_schema(match[1], field)}
    if kind == "int":
        return {"type": "integer", "format": "int64" if field in _INT64 else "int32"}
    if kind == "str" and field in _QUANTITIES:
        return QUANTITY
    return _SCALARS[kind] if kind in _SCALARS else kubernetes_schema(kind, described=False)


def _description(model: type | None) -> str:
    """The first sentence of the class's docstring, without its list of attributes."""
    return _first_sentence(inspect.cleandoc((model and model.__doc__) or "").partition("\n\nAttributes:")[0])


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\w[.])\s+(?=[A-Z])", " ".join(text.split()), maxsplit=1)[0]


def _as_sentence(field: str) -> str:
    """volumeClaimTemplate → Volume claim template."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", field).capitalize() + "."
