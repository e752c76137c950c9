"""TrainJobs that kubectl has applied client-side can be taken over by whoever applies them server-side."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.jobs import Jobs
from control_plane.small_documents import changed, document
from pages import ROOT, trainjob_of
from trainjob.crd.definition import UNSEEN

WRITERS = {
    "kubectl": (),
    "Flux": ("--force-conflicts", "--field-manager=kustomize-controller"),
    "Argo CD": ("--force-conflicts", "--field-manager=argocd-controller"),
}
EMPTY: list[tuple[str, dict[str, Any]]] = [
    ("textClassifier", {"model.textClassifier.encoder": {}, "training": {"optimizer": {"adam": {}}}}),
    ("textClassifier", {"training": {}, "workers": {}, "deadlines": {}, "pods": {}, "baselines": {}}),
    ("textClassifier", {"training": {"optimizer": {"sgd": {}}, "scheduler": {"cosine": {}}, "earlyStopping": {}}}),
    ("imageClassifier", {"model.imageClassifier": {"mlp": {}, "augmentation": {}}}),
    ("imageClassifier", {"model.imageClassifier": {"cnn": {}}, "training": {"scheduler": {"reduceOnPlateau": {}}}}),
    ("causalLM", {"model.causalLM": {"decoder": {}}, "training": {"scheduler": {"linear": {}}}}),
    ("causalLM", {"model.causalLM": {"pretrained": "gpt2", "lora": {}}, "training": {"scheduler": {"constant": {}}}}),
]
"""Objects that are written as `{}`."""


def manifests() -> list[dict[str, Any]]:
    """Every TrainJob of README and the examples, and those of EMPTY."""
    texts = [path.read_text() for path in sorted((ROOT / "manifests" / "examples").glob("*.yaml"))]
    texts.append(trainjob_of("README.md", "s3://datasets/projects.csv"))
    found = [each for text in texts for each in yaml.safe_load_all(text) if each and each["kind"] == "TrainJob"]
    return found + [changed(document(kind), changes) for kind, changes in EMPTY]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_server_side_apply_takes_over(jobs: Jobs, tmp_path: Path, writer: str):
    items = [
        {**each, "metadata": {"name": f"job-{number}", "namespace": jobs.namespace}}
        for number, each in enumerate(manifests())
    ]
    assert len(items) > 15
    file = tmp_path / "trainjobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    jobs.kubectl("apply", "--filename", str(file))
    statuses = [each["status"] for each in jobs.cluster.find("trainjobs", jobs.namespace)]
    assert statuses == [UNSEEN] * len(items), "kstatus takes any other for Current"
    for _ in range(2):
        said = jobs.kubectl("apply", "--server-side", *WRITERS[writer], "--filename", str(file))
        assert said.count("serverside-applied") == len(items)
    managers = {
        field["manager"]: field["operation"]
        for each in jobs.cluster.find("trainjobs", jobs.namespace)
        for field in each["metadata"]["managedFields"]
    }
    assert set(managers.values()) == {"Apply"}, managers
