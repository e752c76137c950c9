"""Reading a TrainJob."""

import os
from pathlib import Path

import pytest
from trainjob_files import GOOD, write

from trainjob.api.document import InvalidDocument, parse
from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.api.load import load_trainjob, position_in_content, trainjob_of


def test_reads_a_trainjob_with_defaults(tmp_path: Path) -> None:
    job = load_trainjob(write(tmp_path, GOOD))
    assert job.metadata.name == "tags"
    assert job.spec.training.epochs == 3
    assert job.spec.training.batch_size == 32
    assert job.spec.model.text_classifier is not None
    assert job.spec.model.text_classifier.encoder is not None
    assert job.spec.model.text_classifier.encoder.layers == 1


@pytest.mark.parametrize(
    ("after", "field", "value"),
    [
        ("    gradientClipping: 1e-4", "gradient_clipping", 1e-4),
        ("    gradientClipping: 1", "gradient_clipping", 1.0),
        ("    gradientClipping: .5", "gradient_clipping", 0.5),
        ("    batchSize: 1e2", "batch_size", 100),
        ("    batchSize: 64.0", "batch_size", 64),
        ("    batchSize: 0x40", "batch_size", 64),
        ("    batchSize: 0o100", "batch_size", 64),
        ("    batchSize: 1_000", "batch_size", 1000),
        ("    batchSize:", "batch_size", 32),
        ("    precision: ~", "precision", "auto"),
    ],
)
def test_reads_yaml_as_kubernetes_does(tmp_path: Path, after: str, field: str, value: object) -> None:
    found = getattr(load_trainjob(write(tmp_path, GOOD + after)).spec.training, field)
    assert found == value
    assert type(found) is type(value)


def test_labels_of_classes_may_look_like_other_types(tmp_path: Path) -> None:
    weights = "      classWeights: {values: {1: 2, 2.5: 1, true: 1, 2024-01-01: 3, a: 1}}\n"
    job = load_trainjob(write(tmp_path, GOOD.replace("  dataset:\n", weights + "  dataset:\n")))
    assert job.spec.model.classifier is not None
    assert job.spec.model.classifier.class_weights is not None
    assert job.spec.model.classifier.class_weights.values == {"1": 2, "2.5": 1, "true": 1, "2024-01-01": 3, "a": 1}


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    text = GOOD.replace("train: {uri: data/train.csv}", "train: &rows {uri: a.csv, format: csv}")
    text = text.replace("    label: tag\n", "    label: tag\n    test:\n      <<: *rows\n      uri: b.csv\n")
    dataset = load_trainjob(write(tmp_path, text)).spec.dataset
    assert dataset is not None
    assert dataset.test is not None
    assert (dataset.train.uri, dataset.test.uri) == (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert dataset.test.format == "csv"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    assert load_trainjob(write(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n"))).metadata.name == "tags"


def test_relative_paths_start_from_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bert").mkdir()
    text = GOOD.replace("encoder: {layers: 1}", "pretrained: bert").replace("data/train.csv", "../train/*.csv")
    text = text.replace(
        "label: tag", "label: tag\n    test: {uri: s3://bucket/test.csv}\n    validation: {uri: /data/v.csv}"
    )
    (tmp_path / "elsewhere").mkdir()
    file = write(tmp_path, text + "  storage: {uri: runs}\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    spec = load_trainjob(Path(os.path.relpath(file))).spec
    assert spec.dataset is not None
    assert spec.dataset.test is not None
    assert spec.storage is not None
    assert spec.model.text_classifier is not None
    assert spec.dataset.train.uri == f"{tmp_path.parent}/train/*.csv"
    assert spec.dataset.test.uri == "s3://bucket/test.csv"
    assert spec.dataset.validation.uri == "/data/v.csv"
    assert spec.storage.uri == f"{tmp_path}/runs"
    assert spec.model.text_classifier.pretrained == f"{tmp_path}/bert"


def test_relative_paths_in_lists(tmp_path: Path) -> None:
    text = GOOD.replace("{uri: data/train.csv}", "{uris: [a.csv, /data/b.csv, 's3://bucket/c.csv', '../d/*.csv']}")
    text = text.replace("label: tag", "label: tag\n    test: {uris: [e]}\n    validation: {uris: [./f]}")
    dataset = load_trainjob(write(tmp_path, text)).spec.dataset
    assert dataset is not None
    assert dataset.test is not None
    assert dataset.train.uris == [
        f"{tmp_path}/a.csv",
        "/data/b.csv",
        "s3://bucket/c.csv",
        f"{tmp_path.parent}/d/*.csv",
    ]
    assert dataset.test.uris == [f"{tmp_path}/e"]
    assert dataset.validation.uris == [f"{tmp_path}/f"]


@pytest.mark.parametrize(
    ("pretrained", "expected"), [("bert-base", "bert-base"), ("org/bert", "org/bert"), ("./bert", "{folder}/bert")]
)
def test_names_on_the_hub_stay_as_they_are(tmp_path: Path, pretrained: str, expected: str) -> None:
    text = GOOD.replace("encoder: {layers: 1}", f"pretrained: {pretrained}")
    model = load_trainjob(write(tmp_path, text)).spec.model.text_classifier
    assert model is not None
    assert model.pretrained == expected.format(folder=tmp_path)


def test_overrides_set_make_and_remove(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD + "    scheduler: {cosine: {}}\n")
    overrides = [
        "spec.training.epochs=7",
        "spec.training.scheduler=null",
        "spec.training.optimizer.sgd.learningRate=1e-2",
        "spec.dataset.text[0]=body",
        "spec.workers={count: 2}",
        "spec.storage.uri=runs",
    ]
    spec = load_trainjob(file, overrides).spec
    assert spec.dataset is not None
    assert spec.storage is not None
    assert spec.training.optimizer.sgd is not None
    assert spec.training.epochs == 7
    assert spec.training.scheduler.constant is not None
    assert spec.training.optimizer.sgd.learning_rate == 0.01
    assert spec.dataset.text == ["body"]
    assert spec.workers.count == 2
    assert spec.storage.uri == f"{tmp_path}/runs"


OTHERS = """\
apiVersion: v1
kind: Secret
metadata: {name: s3}
stringData: {AWS_ACCESS_KEY_ID: a}
---
# Only a comment.
---
"""


@pytest.mark.parametrize("around", [(OTHERS, ""), ("", "---\n" + OTHERS), (OTHERS, "---\n" + OTHERS)])
def test_the_trainjob_is_taken_out_of_a_file_of_other_documents(tmp_path: Path, around: tuple[str, str]) -> None:
    before, after = around
    file = write(tmp_path, before + GOOD + after)
    assert load_trainjob(file, ["spec.training.epochs=7"]).spec.training.epochs == 7


def test_lines_are_those_of_the_whole_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=r":20  spec\.training\.epochs  must be at least 1"):
        load_trainjob(write(tmp_path, OTHERS + GOOD.replace("epochs: 3", "epochs: 0")))


@pytest.mark.parametrize("label", ["y", "N", "1e3", "017", "0o17", "2026-11-28", "", "größe: m #1"])
def test_texts_in_content_stay_texts(label: str) -> None:
    dataset = {"train": {"uri": "data.csv"}, "text": ["text"], "label": label}
    spec = {"model": {"textClassifier": {"encoder": {}}}, "dataset": dataset}
    content = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "n"}, "spec": spec}
    if label:
        read = trainjob_of(content).spec.dataset
        assert read is not None
        assert read.label == label
    written = {"label": label, "rate": 1e-5, "rows": 3}
    assert parse(as_yaml_file(written), position_in_content).data == written
