"""`trainjob serve`, but for serving: what it refuses, and its manifest."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from predictor_runs import make_run
from tiny_sets import write_texts
from trainjob.cli.app import app
from trainjob.errors import UserError

IMAGE = ("--set", "spec.pods.image=trainer:1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 400}
    spec: dict[str, Any] = {
        "model": {"textClassifier": {"encoder": encoder}},
        "dataset": {
            "train": {"uri": str(write_texts(folder) / "train.csv")},
            "text": ["title", "body"],
            "label": "label",
        },
        "storage": {"uri": "s3://runs/team", "endpoint": "http://minio:9000", "secretName": "s3"},
    }
    return make_run(folder / "tags-1234", spec)


def serve(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["serve", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def refused(*arguments: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        serve(*arguments)
    return str(caught.value)


def test_what_is_no_finished_run_of_a_classifier_is_refused(run: Path, tmp_path: Path):
    assert "is not a run's folder" in refused(tmp_path / "missing")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    shutil.copy(run / "trainjob.yaml", unfinished)
    assert "this run has not finished" in refused(unfinished)
    (unfinished / "summary.json").write_text("{}")
    assert "has no trainjob model" in refused(unfinished)
    assert "has no variants: if its kind of model allows it, `trainjob compress" in refused(run, "--variant", "int8")
    assert "s4:// is not supported" in refused("s4://runs/tags")


def test_overrides_are_for_the_manifest(run: Path):
    assert "--set is for --manifest" in refused(run, *IMAGE)


def served(manifest: str) -> dict[str, Any]:
    _, document = yaml.safe_load_all(manifest)
    [application] = yaml.safe_load(document["spec"]["serveConfigV2"])["applications"]
    return application["args"]


def test_the_manifest_serves_the_run_from_its_storage(run: Path):
    """The folder's name is the run's, which on a cluster is more than the TrainJob's."""
    found = served(serve(run, "--manifest", *IMAGE))
    assert found == {"folder": "s3://runs/team/tags-1234", "name": "tags-1234", "endpoint": "http://minio:9000"}


def test_the_manifest_lets_few_connect_to_its_pods(run: Path):
    policy, service = yaml.safe_load_all(serve(run, "--manifest", *IMAGE))
    assert (policy["kind"], service["kind"]) == ("NetworkPolicy", "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    assert cluster["authOptions"] == {"mode": "token"}
    own = policy["spec"]["podSelector"]["matchLabels"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert own.items() <= group["template"]["metadata"]["labels"].items()
    among_themselves, kuberay, everybody = policy["spec"]["ingress"]
    assert among_themselves == {"from": [{"podSelector": {"matchLabels": own}}]}
    assert kuberay["ports"] == [{"protocol": "TCP", "port": 8265}]
    assert kuberay["from"][0]["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}}
    assert everybody == {"ports": [{"protocol": "TCP", "port": 8000}]}


def test_the_manifest_serves_from_a_volume(run: Path):
    found = served(serve(run, "--manifest", *IMAGE, "--set", "spec.storage={persistentVolumeClaim: runs}"))
    assert found == {"folder": "/mnt/storage/tags-1234", "name": "tags-1234"}


def test_the_manifest_serves_a_variant(run: Path):
    shutil.copytree(run / "model", run / "variants" / "int8")
    try:
        found = served(serve(run, "--variant", "int8", "--manifest", *IMAGE))
    finally:
        shutil.rmtree(run / "variants")
    assert found["folder"] == "s3://runs/team/tags-1234/variants/int8"
    assert found["name"] == "tags-1234 (int8)"


def test_a_manifest_needs_an_image_and_a_place_that_pods_reach(run: Path):
    assert "--set spec.pods.image=IMAGE" in refused(run, "--manifest")
    local = ("--set", "spec.storage={uri: /runs}")
    assert "is on this machine" in refused(run, "--manifest", *IMAGE, *local)
    assert "spec.pods.imag" in refused(run, "--manifest", "--set", "spec.pods.imag=trainer:1")
