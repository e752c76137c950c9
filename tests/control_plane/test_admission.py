"""The API server validates TrainJobs as pydantic does, and names the path of the wrong field."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes import client, config
from pydantic import ValidationError

from cluster.client import Cluster
from control_plane.mistakes import mistakes
from control_plane.small_documents import Document, changed, document
from control_plane.strategies import trainjobs
from soak import examples
from trainjob.api import TrainJob

MISTAKES = list(mistakes())
IN_A_CLUSTER_ONLY = (
    "must start with a scheme",
    "must be a name on the Hugging Face hub",
    "every key must be",
    "every value must be",
    "spec.pods.",
    "Duplicate value",
)
"""Errors that only the API server reports; a laptop ignores the contents of Kubernetes' own objects."""


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(config.new_client_from_config(str(cluster.kubeconfig)))


def create(api: client.CustomObjectsApi, doc: Document) -> Document:
    """`doc` as the API server would keep it; raises ApiException where it refuses it."""
    kept: Any = api.create_namespaced_custom_object(
        "trainjob.dev", "v1alpha1", "default", "trainjobs", doc, dry_run="All", field_validation="Strict"
    )
    return kept


def refusal(api: client.CustomObjectsApi, doc: Document) -> str:
    """The API server's reason for refusing `doc`, or an empty text."""
    try:
        create(api, doc)
    except client.ApiException as error:
        return message(error)
    return ""


def message(error: client.ApiException) -> str:
    """The API server's message about an invalid document; raises any other error."""
    if error.status not in (400, 422):
        raise error
    return json.loads(str(error.body))["message"]


def parse(doc: Document) -> TrainJob:
    return TrainJob.model_validate(doc, strict=True, by_alias=True, by_name=False)


def is_valid(doc: Document) -> bool:
    try:
        parse(doc)
    except ValidationError:
        return False
    return True


def test_there_are_enough_mistakes() -> None:
    assert len({json.dumps(doc) for doc, _ in MISTAKES}) >= 200


@pytest.mark.parametrize(("doc", "path"), MISTAKES, ids=[f"{n}-{path}" for n, (_, path) in enumerate(MISTAKES)])
def test_a_mistake_is_refused_with_its_field(api: client.CustomObjectsApi, doc: Document, path: str) -> None:
    said = refusal(api, doc)
    assert f"spec.{path}" in said
    assert "evaluation error" not in said
    assert "modulus" not in said


def test_rules_that_are_merged_name_every_wrong_field(api: client.CustomObjectsApi) -> None:
    changes = {"dataset.label": ..., "dataset.image": "photo", "checkpoints": {"metric": "validation_rmse"}}
    said = refusal(api, changed(document(), changes))
    with pytest.raises(ValidationError) as error:
        parse(changed(document(), changes))
    conflicts = error.value.errors()[0]["ctx"]["conflicts"]
    assert {field for field, _ in conflicts} == {"dataset.label", "dataset.image", "checkpoints.metric"}
    for field, message in conflicts:
        assert f"spec.{field}: {message}" in said


@examples(100)
@given(doc=trainjobs())
def test_valid_trainjobs_are_admitted_and_get_the_defaults_of_a_laptop(
    api: client.CustomObjectsApi, doc: Document
) -> None:
    assert parse({**doc, "spec": create(api, doc)["spec"]}) == parse(doc)


@examples(150)
@given(doc=trainjobs(), data=st.data())
def test_pydantic_agrees(api: client.CustomObjectsApi, doc: Document, data: st.DataObject) -> None:
    spoil(doc["spec"], data.draw)
    said = refusal(api, doc)
    on_a_laptop = not said or any(words in said for words in IN_A_CLUSTER_ONLY)
    assert on_a_laptop if is_valid(doc) else said


VALUES: list[Any] = [
    -1,
    0,
    1,
    2,
    3,
    0.5,
    2**40,
    True,
    "",
    "x",
    "1",
    "3h",
    "./x",
    "s3://x",
    "s3://",
    "x\n",
    "500m",
    "1.5Gi",
    1.5,
    10**9,
    [],
    [1],
    ["x"],
    {},
    {"x": 1},
]


def spoil(spec: Any, draw: Any) -> None:
    """Changes, removes or adds one field, wherever it lies."""
    container, key = draw(st.sampled_from(list(_places(spec))))
    if draw(st.integers(0, 4)) == 0:
        del container[key]
    elif isinstance(container, dict) and draw(st.integers(0, 4)) == 0:
        container[draw(st.sampled_from(["uri", "adam", "encoder", "function", "format", "perPod", "typo"]))] = {}
    else:
        container[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything inside `part`; a function's configuration is its own business."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield part, key
        if key != "config":
            yield from _places(value)


EXISTING = ("trainjob.dev", "v1alpha1", "default", "trainjobs", "existing")


@pytest.fixture(scope="module")
def existing(cluster: Cluster) -> Iterator[Document]:
    """A function's TrainJob on the API server."""
    doc = changed(
        document("function", "existing"),
        {
            "training": {"epochs": 3, "batchSize": 12},
            "model.function.config": {"a": 1},
            "workers.cpus": 1,
            "requirements": ["einops"],
        },
    )
    cluster.apply({**doc, "metadata": {"name": "existing", "namespace": "default"}})
    yield doc
    cluster.kubectl("delete", "trainjob", "existing", "--namespace=default")


def update(api: client.CustomObjectsApi, doc: Document) -> str:
    """The API server's reason for refusing to replace the existing document with `doc`, or an empty text."""
    kept: Any = api.get_namespaced_custom_object(*EXISTING)
    doc = {**doc, "metadata": kept["metadata"]}
    try:
        api.replace_namespaced_custom_object(*EXISTING, doc, dry_run="All", field_validation="Strict")
    except client.ApiException as error:
        return message(error)
    return ""


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("model", {"model.function.config": {"a": 2}}),
        ("model", {"model.function.config": {"a": 1, "b": None}}),
        ("model", {"model.function.name": "other:loop"}),
        ("dataset", {"dataset": ...}),
        ("dataset", {"dataset.label": "tag"}),
        ("training", {"training.epochs": 4}),
        ("training", {"training": ...}),
        ("checkpoints", {"checkpoints": {"keep": 2}}),
        ("head", {"head": {"cpus": 2}}),
        ("storage", {"storage.secretName": "s3"}),
        ("storage", {"storage": ...}),
        ("pods", {"pods": {"env": [{"name": "A"}]}}),
        ("requirements", {"requirements": ["einops>=0.8"]}),
        ("managedBy", {"managedBy": "kueue.x-k8s.io/multikueue"}),
        ("tracking", {"tracking": [{"mlflow": {"uri": "http://mlflow:5000"}}]}),
    ],
)
def test_what_is_trained_cannot_change(
    api: client.CustomObjectsApi, existing: Document, field: str, changes: dict[str, Any]
) -> None:
    said = update(api, changed(existing, changes))
    assert f"spec.{field}: " in said
    assert "cannot be changed" in said


@pytest.mark.parametrize(
    "changes",
    [
        {"suspend": True},
        {"cancel": True},
        {"retries": 3},
        {"notify": [{"webhook": {"secretName": "hook"}, "events": ["Failed"]}]},
        {"deadlines": {"total": "6h"}},
        {"ttlAfterFinished": "7d"},
        {"rayJobTTLAfterFinished": "7d"},
        {"training.seed": 42},
        {"workers": {"count": 2}},
        {"workers": {"count": 2, "minimum": 1}},
        {"workers.cpus": 2},
        {"workers": ...},
    ],
)
def test_how_long_it_may_take_can_change(
    api: client.CustomObjectsApi, existing: Document, changes: dict[str, Any]
) -> None:
    assert update(api, changed(existing, changes)) == ""


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("workers.perPod", {"workers": {"count": 3, "perPod": 2}}),
        ("training.batchSize", {"workers": {"count": 5}}),
        ("workers.gpus", {"workers": {"gpus": 2}}),
        ("workers.minimum", {"workers": {"count": 2, "minimum": 3}}),
        ("deadlines.start", {"deadlines": {"start": "2h", "total": "90m"}}),
        ("notify", {"notify": [{"events": ["Failed"]}]}),
    ],
)
def test_workers_and_deadlines_change_only_to_what_fits(
    api: client.CustomObjectsApi, existing: Document, field: str, changes: Document
) -> None:
    assert f"spec.{field}: " in update(api, changed(existing, changes))


def test_a_spec_is_required(api: client.CustomObjectsApi) -> None:
    doc = document()
    del doc["spec"]
    assert "spec: Required value" in refusal(api, doc)


STATUS: Document = {
    "phase": "Running",
    "reason": "Training",
    "message": "epoch 2 of 10",
    "conditions": [
        {"type": "Accepted", "status": "True", "reason": "Rendered", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    ],
    "observedGeneration": 1,
    "startTime": "2026-01-02T03:04:05Z",
    "attempt": 1,
    "workers": {"desired": 4, "ready": 3},
    "waiting": [{"reason": "Unschedulable", "pods": 1, "message": "0/5 nodes"}],
    "training": {
        "percent": 42.7,
        "metrics": {"validation_loss": 0.25},
        "latestCheckpoint": {"uri": "s3://a", "step": 9},
        "tuning": {
            "ended": "2/8",
            "total": 8,
            "done": 2,
            "best": {"number": 1, "parameters": {"training.epochs": "3"}},
        },
    },
}


def test_a_status_is_kept_whole_and_shown(cluster: Cluster, api: client.CustomObjectsApi, existing: Document) -> None:
    kept: Any = api.patch_namespaced_custom_object_status(*EXISTING, {"status": STATUS}, field_validation="Strict")
    assert kept["status"] == STATUS
    table = cluster.kubectl("get", "tj", "existing", "--namespace=default").splitlines()
    assert table[0].split() == ["NAME", "PHASE", "REASON", "PERCENT", "WORKERS", "ATTEMPT", "AGE"]
    assert table[1].split()[:6] == ["existing", "Running", "Training", "42", "3", "1"]
    header, row = cluster.kubectl("get", "tj", "existing", "--namespace=default", "--output=wide").splitlines()
    assert row[header.index("TRIALS") :].startswith("2/8 ")


def test_kubectl_explains_fields(cluster: Cluster) -> None:
    explained = cluster.kubectl("explain", "trainjob.spec.workers")
    assert "The training processes." in explained
    assert "GPUs of each worker process: 0 or 1." in explained
