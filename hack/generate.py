"""`python hack/generate.py` writes the derived parts of the chart, its reference and manifests/install.yaml.

It needs `hack` on PYTHONPATH, for the Helm that the project pins.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from servers.programs import program
from trainjob.api.wording import fields_of
from trainjob.crd.generate import generated_files
from trainjob.crd.kubernetes_types import kubernetes_schema
from trainjob.crd.schema import kubernetes_type
from trainjob_operator.settings import NodePool, Settings

Schema = dict[str, Any]

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "trainjob"
SCHEMA = CHART / "values.schema.json"
REFERENCE = ROOT / "docs" / "chart.md"
TABLE = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->\n)", re.DOTALL)
INSTALL = ROOT / "manifests" / "install.yaml"
INSTALL_NAMESPACE = "trainjob-system"

_KUBERNETES_KEYWORDS = {"type", "properties", "required", "items", "additionalProperties", "pattern"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def definition() -> str:
    """The spec of the TrainJob's CustomResourceDefinition."""
    _, spec, rest = generated_files()["manifests/crd.yaml"].partition("spec:\n")
    return spec + rest


def values_schema() -> str:
    """The schema of the chart's values: written by hand but for its definitions."""
    return json.dumps(json.loads(SCHEMA.read_text()) | {"$defs": _definitions()}, indent=2, ensure_ascii=False) + "\n"


def reference() -> str:
    """The page about the chart, with a table of its values."""
    schema, values = json.loads(values_schema()), yaml.safe_load((CHART / "values.yaml").read_text())
    table = ["| value | default | |", "|---|---|---|", *_rows(schema, values, schema["$defs"])]
    return TABLE.sub(lambda _: "\n".join(["", *table, "", ""]), REFERENCE.read_text())


def install() -> str:
    """All that the chart makes, for those without Helm."""
    options = ["--namespace", INSTALL_NAMESPACE, "--set", "crds.keep=false"]
    done = subprocess.run(
        [program("helm"), "template", "trainjob", CHART, *options], check=True, capture_output=True, text=True
    )
    helm = re.compile(r"^( *(app.kubernetes.io/managed-by|helm.sh/chart): .*|# Source: .*)\n", re.MULTILINE)
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {INSTALL_NAMESPACE}\n"
    return "# Made from charts/trainjob by `make generate`.\n" + namespace + helm.sub("", done.stdout)


def _definitions() -> dict[str, Schema]:
    schema = _without_titles(Settings.model_json_schema(by_alias=True))
    definitions = schema.pop("$defs")
    del schema["properties"]["image"], schema["required"]  # the chart has trainer.image
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
    """Pydantic's schema without its titles, and with names in maps that are held to their pattern."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_titles(value) for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    return kept | ({"additionalProperties": False} if "patternProperties" in kept else {})


def _strict(schema: Schema) -> Schema:
    """A structural schema as one that knows no other fields; descriptions are left to Kubernetes."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["number", "string"], "pattern": schema["pattern"]}
    strict = {key: value for key, value in schema.items() if key in _KUBERNETES_KEYWORDS}
    if "properties" in strict:
        properties = {name: _strict(value) for name, value in strict["properties"].items()}
        return strict | {"properties": properties, "additionalProperties": False}
    return strict | {key: _strict(strict[key]) for key in ("items", "additionalProperties") if key in strict}


def _rows(schema: Schema, values: Any, definitions: Schema, path: str = "") -> Iterator[str]:
    for name, found in schema["properties"].items():
        part = found | (_target(found, definitions) if "$ref" in found else {})
        default = values.get(name, part.get("default"))
        if "properties" in part and "description" not in found:
            yield from _rows(part, default, definitions, f"{path}{name}.")
        elif name != "global":
            shown = "" if default in (None, "") else f"`{json.dumps(default)}`"
            yield f"| `{path}{name}` | {shown} | {found['description']} |"
        for item in found.get("patternProperties", {}).values():
            yield from _rows(_target(item, definitions), {}, definitions, f"{path}{name}.NAME.")


def _target(reference: Schema, definitions: Schema) -> Schema:
    return definitions[reference["$ref"].rpartition("/")[2]]


def generated() -> Iterator[tuple[Path, str]]:
    """Each file and its text; the last one is made of the chart as the others leave it."""
    yield CHART / "files" / "crd.yaml", definition()
    yield SCHEMA, values_schema()
    yield REFERENCE, reference()
    yield INSTALL, install()


def main(check: bool) -> int:
    """The number of files that are out of date, if it is only to `check` them."""
    stale = 0
    for path, text in generated():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run `make generate`")
            stale += 1
    return stale


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
