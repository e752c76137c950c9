"""`python hack/generate.py` writes the derived files: the schema of the chart's values, the table of values in
docs/chart.md, and the table of reasons in docs/status.md."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from trainjob.api import status_reasons
from trainjob.api.notify import Receiver
from trainjob.api.storage import Storage
from trainjob.crd.kubernetes_types import kubernetes_schema
from trainjob.crd.schema import kubernetes_type
from trainjob.schema.base import fields_of
from trainjob_operator.settings import NodePool, Settings

Schema = dict[str, Any]

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "trainjob"
SCHEMA = CHART / "values.schema.json"
REFERENCE = ROOT / "docs" / "chart.md"
TABLE = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->\n)", re.DOTALL)
STATUS = ROOT / "docs" / "status.md"
REASONS = re.compile(r"(?<=<!-- reasons -->\n).*(?=<!-- end of reasons -->\n)", re.DOTALL)

_KUBERNETES_KEYWORDS = {"type", "properties", "required", "items", "additionalProperties", "pattern"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def values_schema() -> str:
    """The schema of the chart's values: handwritten except for `$defs`, which is derived."""
    return json.dumps(json.loads(SCHEMA.read_text()) | {"$defs": _definitions()}, indent=2, ensure_ascii=False) + "\n"


def reference() -> str:
    """The page about the chart, with a table of its values."""
    schema, values = json.loads(values_schema()), yaml.safe_load((CHART / "values.yaml").read_text())
    table = ["| value | default | |", "|---|---|---|", *_rows(schema, values, schema["$defs"])]
    return TABLE.sub(lambda _: "\n".join(["", *table, "", ""]), REFERENCE.read_text())


def status_page() -> str:
    """The page about the status, with a table of its reasons."""
    return REASONS.sub(lambda _: f"\n{status_reasons.table()}\n", STATUS.read_text())


def _definitions() -> dict[str, Schema]:
    schema = _without_titles(Settings.model_json_schema(by_alias=True))
    definitions = schema.pop("$defs")
    del schema["properties"]["image"], schema["required"]  # the chart has trainer.image
    for choice in (Storage, Receiver):
        definitions[choice.__name__]["oneOf"] = [{"required": [to_camel(name)]} for name in choice.choice_fields()]
    pool = definitions["NodePool"]["properties"]
    for name, info in fields_of(NodePool).items():
        if kind := kubernetes_type(info.annotation):
            reference = {"$ref": f"#/$defs/{kind.removeprefix('V1')}"}
            value = {"type": "array", "items": reference} if pool[name].get("type") == "array" else reference
            pool[name] = {"description": pool[name]["description"], **value}
    for kind in ("Affinity", "ResourceRequirements", "Toleration"):
        definitions[kind] = _strict(kubernetes_schema(f"V1{kind}"))
    return {
        "Name": schema["properties"]["imagePullSecrets"]["items"],
        "Repository": {"type": "string", "pattern": "^[a-z0-9][^@ ]*$"},
        "Tag": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{0,128}$"},
        "Digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        "Texts": _TEXTS,
        "Settings": schema,
        **definitions,
    }


def _without_titles(schema: Any) -> Any:
    """Pydantic's schema without titles; maps with a pattern for names allow no other names."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_titles(value) for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    return kept | ({"additionalProperties": False} if "patternProperties" in kept else {})


def _strict(schema: Schema) -> Schema:
    """A structural schema that allows no other fields, without the descriptions of Kubernetes' own types."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["number", "string"], "pattern": schema["pattern"]}
    strict = {key: value for key, value in schema.items() if key in _KUBERNETES_KEYWORDS}
    if "properties" in strict:
        properties = {name: _strict(value) for name, value in strict["properties"].items()}
        return strict | {"properties": properties, "additionalProperties": False}
    return strict | {key: _strict(strict[key]) for key in ("items", "additionalProperties") if key in strict}


def _rows(schema: Schema, values: Any, definitions: Schema, path: str = "") -> Iterator[str]:
    for name, found in schema["properties"].items():
        value = found | (_target(found, definitions) if "$ref" in found else {})
        default = values.get(name, value.get("default"))
        if "properties" in value and "description" not in found:
            yield from _rows(value, default, definitions, f"{path}{name}.")
        elif name != "global":
            shown = "" if default in (None, "") else f"`{json.dumps(default)}`"
            yield f"| `{path}{name}` | {shown} | {' '.join(found['description'].split())} |"
        for item in (each for each in found.get("patternProperties", {}).values() if "$ref" in each):
            yield from _rows(_target(item, definitions), {}, definitions, f"{path}{name}.NAME.")


def _target(reference: Schema, definitions: Schema) -> Schema:
    return definitions[reference["$ref"].rpartition("/")[2]]


def generated() -> Iterator[tuple[Path, str]]:
    """Each file and its text."""
    yield SCHEMA, values_schema()
    yield REFERENCE, reference()
    yield STATUS, status_page()


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")
