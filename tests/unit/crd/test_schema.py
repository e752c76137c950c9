"""The CustomResourceDefinition and the reference page, as they are derived from the TrainJob type."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from control_plane.small_documents import MODELS, changed, document
from control_plane.strategies import trainjobs, values_of
from trainjob.api import TrainJob, TrainJobSpec
from trainjob.api.training_status import MAX_ENTRIES, MAX_TEXT_CHARACTERS
from trainjob.api.tuning import TUNABLE, optional_parts
from trainjob.crd import crd
from trainjob.crd.definition import trainjob_schema
from trainjob.crd.generate import ROOT, generated_files
from trainjob.crd.kubernetes_types import kubernetes_schema
from trainjob.crd.reference import reference
from trainjob.crd.rules import RULES, rules_of
from trainjob.crd.schema import spec_schema, status_schema
from trainjob.crd.spec_rules import ITEMS
from trainjob.kinds import KINDS
from trainjob.schema.base import OneOf, StrictModel, fields_of, nested_model
from trainjob.schema.rules import RuledModel

SCHEMA = trainjob_schema()
STRUCTURAL = {
    "type", "description", "properties", "required", "items", "additionalProperties", "default", "enum", "format",
    "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "anyOf", "not", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
}  # fmt: skip

UNTYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, schema) of every value in a schema."""
    yield path, schema
    for name, value in schema.get("properties", {}).items():
        yield from nodes(value, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from nodes(schema[inner], f"{path}[]")


def at(path: str) -> dict[str, Any]:
    return dict(nodes(SCHEMA))[path]


def test_the_written_files_are_up_to_date() -> None:
    for path, text in generated_files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make generate`"


def test_it_is_far_smaller_than_an_api_server_takes() -> None:
    kept = json.dumps(crd(), separators=(",", ":"))  # by `kubectl apply` in an annotation, of 262,144 bytes at most
    assert len(kept) < 260_000


def test_it_is_structural() -> None:
    for path, node in nodes(SCHEMA):
        assert set(node) <= STRUCTURAL, path
        assert "type" in node or any(node.get(mark) for mark in UNTYPED), path
        assert set(node.get("required", ())) <= set(node.get("properties", {})), path


def is_described(path: str) -> bool:
    """Whether the schema describes a field: neither an item, nor what Kubernetes' own types or every tuned parameter
    repeat."""
    inside_kubernetes_types = r"\.spec\.pods\.\w+(\[\])?\.\w+[.[].+"
    distribution = r"\.spec\.tuning\.parameters\..*\.(uniform|logUniform|range|choice|grid)"
    return (
        path not in ("", ".metadata")
        and not path.endswith("[]")
        and not re.fullmatch(f"{inside_kubernetes_types}|{distribution}", path)
    )


def test_every_field_is_described() -> None:
    for path, node in nodes(SCHEMA):
        assert not is_described(path) or node["description"].strip(), path
    assert at(".spec.pods.volumes[].csi")["description"]
    assert "description" not in at(".spec.pods.volumes[].csi.driver")


def test_every_field_of_the_type_is_there() -> None:
    def check(part: type[StrictModel], schema: dict[str, Any]) -> None:
        schema = schema.get("items", schema)
        assert list(schema["properties"]) == list(fields_of(part))
        for name, info in fields_of(part).items():
            if inner := nested_model(info.annotation):
                check(inner, schema["properties"][name])

    check(TrainJobSpec, SCHEMA["properties"]["spec"])


def test_values_are_bounded_as_the_type_says() -> None:
    assert at(".spec.training.epochs") == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "default": 10,
        "description": "Maximum number of passes over the training rows.",
    }
    assert at(".spec.training.gradientClipping")["exclusiveMinimum"] is True
    assert at(".spec.training.precision")["enum"] == ["auto", "bf16", "fp16", "float32"]
    assert at(".spec.model.function.config")["x-kubernetes-preserve-unknown-fields"] is True
    assert at(".spec.model.textClassifier.classWeights.values[]")["exclusiveMinimum"] is True


def test_patterns_mean_the_same_for_pydantic_and_an_api_server() -> None:
    """Of the two, only pydantic's classes of characters are Unicode's."""
    patterns = {node["pattern"] for _, node in nodes(SCHEMA) if "pattern" in node}
    assert len(patterns) > 15
    assert [pattern for pattern in patterns if re.search(r"\\[bBdDsSwW]", pattern)] == []


def test_defaults_are_the_shortest_that_say_it() -> None:
    assert at(".spec.training")["default"] == {}
    assert at(".spec.training.optimizer")["default"] == {"adamW": {}}
    assert at(".spec.checkpoints.keep")["default"] == 1
    assert "default" not in at(".spec.storage")
    assert "default" not in at(".spec.pods.env")


def test_what_may_be_written_as_an_empty_object_is_never_emptied_by_the_api_server():
    """The API server removes defaults that it has filled in when a server-side apply takes over from a client-side
    one."""
    for path, node in nodes(SCHEMA["properties"]["spec"]):
        within = [name for name, value in node.get("properties", {}).items() if "default" in value]
        may_be_empty = node.get("type") == "object" and not node.get("required") and "default" not in node
        is_item = path.removesuffix("[]").lstrip(".") in ITEMS
        is_choice = is_item or any("exists_one" in rule["rule"] for rule in node.get("x-kubernetes-validations", ()))
        assert not (may_be_empty and within) or is_choice, path


def test_the_reference_has_the_defaults_that_the_api_server_does_not_fill_in():
    assert "| `hiddenSize` | integer, >= 1 | `128` |" in reference()
    assert "default" not in at(".spec.model.textClassifier.encoder.hiddenSize")


def test_items_of_lists_are_told_apart_by_name() -> None:
    for path, key in [
        (".spec.pods.env", "name"),
        (".spec.pods.volumes", "name"),
        (".spec.pods.volumeMounts", "mountPath"),
        (".spec.pods.imagePullSecrets", "name"),
        (".status.conditions", "type"),
    ]:
        assert at(path)["x-kubernetes-list-map-keys"] == [key]
        assert key in at(f"{path}[]")["required"]
    assert at(".spec.pods.tolerations")["x-kubernetes-list-type"] == "atomic"


def test_a_status_may_come_bit_by_bit() -> None:
    required = {".conditions[]": ["type"], ".training.failure": ["exception"]}
    for path, node in nodes(SCHEMA["properties"]["status"]):
        assert node.get("default") == (None if path else {"observedGeneration": -1}), path
        assert node.get("required") == required.get(path), path


def test_what_pods_write_has_an_end() -> None:
    training = SCHEMA["properties"]["status"]["properties"]["training"]
    assert training["x-kubernetes-map-type"] == "atomic"
    for path, node in nodes(training):
        if node["type"] == "string":
            assert {"enum", "format"} & node.keys() or node["maxLength"] == MAX_TEXT_CHARACTERS, path
        if node["type"] == "object":
            assert "properties" in node or "x-kubernetes-validations" in node, path
            assert "properties" in node or node["maxProperties"] == MAX_ENTRIES, path
        assert node["type"] != "array" or node["maxItems"] == MAX_ENTRIES, path


def test_kubernetes_own_types() -> None:
    variable = kubernetes_schema("V1EnvVar")
    assert variable["required"] == ["name"]
    assert variable["properties"]["value"]["type"] == "string"
    assert variable["properties"]["valueFrom"]["properties"]["secretKeyRef"]["required"] == ["key"]
    limit = kubernetes_schema("V1EmptyDirVolumeSource")["properties"]["sizeLimit"]
    assert limit["x-kubernetes-int-or-string"] is True
    assert kubernetes_schema("V1Toleration")["properties"]["tolerationSeconds"]["format"] == "int64"
    assert kubernetes_schema("V1CSIVolumeSource")["properties"]["volumeAttributes"]["additionalProperties"] == {
        "type": "string"
    }


def test_every_choice_has_its_rule() -> None:
    class Animal(OneOf):
        """An animal."""

        cat: str | None = None
        """A cat."""
        function: str | None = None
        """A word that CEL keeps for itself."""

    (rule,) = spec_schema(Animal)["x-kubernetes-validations"]
    assert "[has(self.cat), has(self.__function__)].exists_one(given, given)" in rule["rule"]
    assert rule["message"] == "set exactly one of cat, function"
    assert "x-kubernetes-validations" not in status_schema(Animal)


def test_rules_name_fields_that_exist() -> None:
    for part in {*RULES, *RuledModel.__subclasses__()}:
        known = dict(nodes(spec_schema(part)))
        for rule in chain.from_iterable(found.parts for found in rules_of(part)):
            assert not rule.field or f".{rule.field}" in known


def test_the_reference_has_every_field_of_the_type() -> None:
    text = reference()
    for path, node in nodes(SCHEMA):
        if re.fullmatch(r"\.spec\.(?!pods\.)[\w.]+", path):
            assert f"| `{path.rpartition('.')[2]}` |" in text, path
            assert not is_described(path) or node["description"].replace("|", "\\|") in text, path


@pytest.mark.nightly
def test_random_trainjobs_are_valid_and_have_every_field() -> None:
    """Except Kubernetes' own fields and hyperparameters, which the strategy takes from the API's list."""
    others = r"\[\]|\.pods\.\w+\.|\.tuning\.parameters\."
    ours = {path for path, _ in nodes(SCHEMA["properties"]["spec"]) if not re.search(others, path)}
    missing = ours - {""}

    @settings(derandomize=False, database=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
    @given(trainjobs())
    def check(doc: dict[str, Any]) -> None:
        if not missing.isdisjoint(found := set(paths(doc["spec"]))):
            TrainJob.model_validate(doc, strict=True, by_alias=True, by_name=False)
            missing.difference_update(found)

    for number in range(40):
        if missing:
            seed(number)(check)()
    assert missing == set()


@pytest.mark.parametrize("path", TUNABLE)
def test_every_hyperparameter_may_be_tuned(path: str) -> None:
    model = path.split(".")[1] if path.startswith("model.") else "textClassifier"
    choices = {".cnn.": {"cnn": {}}, ".lora.": {"pretrained": "gpt2"}}
    choice = next((choice for part, choice in choices.items() if part in path), MODELS[model])
    doc = changed(document(model), {"model": {model: choice}, "workers": {"count": 1}})
    for part in optional_parts(path)[path.startswith("model") :]:
        doc = changed(doc, {part.path: {"teacher": "s3://runs/teacher"} if "distillation" in part.path else {}})
    if ".text." in path:
        doc = changed(doc, {"dataset.columns": {"review": "text"}})
    if path.removeprefix(f"model.{model}.") in KINDS[model].scales_losses:
        doc = changed(doc, {"checkpoints.metric": list(KINDS[model].metrics)[2]})
    values, ways = values_of(path, doc["spec"])
    TrainJob.model_validate(changed(doc, {"tuning": {"parameters": {path: {ways[0]: values}}}}), strict=True)


def paths(part: Any, path: str = "") -> Iterator[str]:
    """The path of every field inside `part`."""
    for name, value in part.items() if isinstance(part, dict) else ():
        yield f"{path}.{name}"
        yield from paths(value, f"{path}.{name}")
