"""The files of a finished run, and the command's output."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
import torch
from pyarrow import parquet
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_runs import Finished, assert_equal
from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification
from transformers.models.auto.tokenization_auto import AutoTokenizer

from trainjob import Predictor
from trainjob.runs.model import local_copy
from trainjob.storage import Folder

ROWS = {"train": 480, "validation": 121, "test": 151}
PHASE = r"[a-z][\w :]*?(, \d:\d\d:\d\d$| [\d,.]+/[\d,.]+ )"
"""A phase that takes more than 3 seconds on a busy machine."""
LINE = re.compile(rf"tags: \S|epoch \d+/3[: ] |  \S|{PHASE}")
"""Every line that `trainjob run` prints for the run below begins like this."""


def test_the_output_is_plain_lines(finished: Finished):
    run, done = finished
    assert done.stderr == ""
    assert [line for line in done.stdout.splitlines() if not LINE.match(line)] == []
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout) is None
    epochs = [line[:10] for line in done.stdout.splitlines() if "train_loss" in line]
    assert epochs == [f"epoch {epoch}/3:" for epoch in range(1, 4)]
    assert str(run.folder / "model") in done.stdout
    assert str(run.folder / "report.html") in done.stdout


def test_the_folder_holds_what_is_documented_and_nothing_else(finished: Finished):
    run, _ = finished
    names = {path.name for path in run.folder.iterdir() if not path.name.startswith(".")}
    assert names - {"logs"} == {  # which is there if a worker has printed something
        "attempts.json",
        "baselines.json",
        "checkpoints",
        "evaluation.json",
        "fitted",
        "metrics.jsonl",
        "model",
        "predictions",
        "report.html",
        "summary.json",
        "tensorboard",
        "trainjob.yaml",
        "variants",
    }


def test_transformers_loads_the_model(finished: Finished):
    run, _ = finished
    folder = run.folder / "model"
    assert (folder / "model.safetensors").exists()
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    texts = ["red1 word3 red7", "word9 blue2"]
    with torch.inference_mode():
        logits = model.eval()(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(logits, Predictor.load(run.folder).outputs(texts))
    assert sorted(model.config.label2id) == ["blue", "green", "grey", "red"]


def test_the_saved_trainjob_is_valid_and_complete(finished: Finished):
    run, _ = finished
    saved = str(run.folder / "trainjob.yaml")
    subprocess.run([sys.executable, "-m", "trainjob", "validate", saved], check=True, capture_output=True, timeout=120)
    text = Path(saved).read_text()
    assert "keep: 1" in text  # a default
    assert f"uri: {run.folder.parent}" in text  # was relative


def test_the_run_tells_which_loader_was_chosen(local: Finished):
    run, _ = local
    chosen = "  loader: dataLoader\n"
    assert chosen in (run.folder / "trainjob.yaml").read_text()
    assert chosen in (run.folder / "report.html").read_text()


def test_metrics_are_recorded_for_steps_and_epochs(finished: Finished):
    run, _ = finished
    steps, epochs = run.records("step"), run.records("epoch")
    assert [record["epoch"] for record in epochs] == [1, 2, 3]
    assert [record["step"] for record in steps] == list(range(1, 91))
    assert [record["step"] for record in epochs] == [30, 60, 90]
    assert {"validation_loss", "validation_accuracy", "validation_f1", "train_loss", "time"} <= epochs[0].keys()
    assert {"loss", "learning_rate", "samples_per_second", "time"} <= steps[0].keys()
    values = [value for record in steps + epochs for name, value in record.items() if name != "kind"]
    assert all(math.isfinite(value) for value in values)


def test_tensorboard_shows_the_same(finished: Finished):
    run, _ = finished
    board = EventAccumulator(str(run.folder / "tensorboard"))
    board.Reload()
    for kind in ("step", "epoch"):
        names = run.records(kind)[0].keys() - {"kind", "step", "epoch", "time"}
        for name in names:
            shown = [(event.step, event.value) for event in board.Scalars(f"{kind}/{name}")]
            recorded = [(record["step"], pytest.approx(record[name], rel=1e-6)) for record in run.records(kind)]
            assert shown == recorded, name


def test_the_evaluation_is_what_the_saved_model_gives(finished: Finished, text_set: Path):
    run, _ = finished
    table = pyarrow.csv.read_csv(text_set / "test.csv")
    predicted = Predictor.load(run.folder).predict(table)
    right = sum(guess == label for guess, label in zip(predicted, table["label"].to_pylist(), strict=True))
    test = run.read("evaluation.json")["test"]
    assert test["rows"] == len(table) == sum(test["confusion"]["rows"])
    assert test["accuracy"] == right / len(table)
    assert {name: part["rows"] for name, part in run.read("evaluation.json").items()} == {
        name: rows for name, rows in ROWS.items() if name != "train"
    }


def test_what_was_predicted_is_kept_row_by_row(finished: Finished, text_set: Path):
    run, _ = finished
    table = pyarrow.csv.read_csv(text_set / "test.csv")
    kept = parquet.read_table(run.folder / "predictions" / "model.parquet")
    assert kept["row"].to_pylist() == list(range(len(table)))
    assert kept["label"].to_pylist() == table["label"].to_pylist()
    predictor = Predictor.load(run.folder)
    assert kept["prediction"].to_pylist() == predictor.predict(table)
    probabilities = predictor.predict_proba(table)
    np.testing.assert_allclose(kept["probability"], probabilities.max(axis=1), rtol=1e-4)
    for names, values, row in zip(kept["classes"], kept["probabilities"], probabilities, strict=True):
        found = dict(zip(names.as_py(), values.as_py(), strict=True))
        np.testing.assert_allclose([found[name] for name in predictor.classes], row, rtol=1e-4)
    assert set(kept["file"].to_pylist()) == {str(text_set / "test.csv")}
    assert kept["file_row"].to_pylist() == [row + 1 for row in range(len(table))]
    texts = zip(*(table[name].to_pylist() for name in predictor.preprocessor.input.columns), strict=True)
    assert kept["text"].to_pylist() == [" ".join(map(str, filter(None, row))) for row in texts]


def test_the_model_is_the_best_epochs(finished: Finished):
    run, _ = finished
    best = min(run.records("epoch"), key=lambda record: record["validation_loss"])
    summary = run.read("summary.json")
    assert summary["bestCheckpoint"]["step"] == best["step"]
    assert summary["bestCheckpoint"]["value"] == best["validation_loss"]
    assert run.read("evaluation.json")["validation"]["loss"] == best["validation_loss"]
    name = next(path for path in (run.folder / "checkpoints").iterdir() if path.name.endswith(f"{best['step']:08d}"))
    with local_copy(Folder(str(name))) as model:
        assert_equal(load_file(model / "model.safetensors"), run.weights())


def test_the_summary_counts_the_rows(finished: Finished):
    run, _ = finished
    summary = run.read("summary.json")
    assert summary["rows"] == ROWS
    assert summary["outcome"] == "Succeeded"
    assert summary["workers"]["count"] == 2
    assert all(seconds >= 0 for seconds in summary["seconds"].values())
    report = (run.folder / "report.html").read_text()
    assert report.startswith("<!doctype html>")


@pytest.mark.nightly
def test_local_processes_give_the_same_weights_as_ray(on_ray: Finished, local: Finished):
    run, other = on_ray[0], local[0]
    assert_equal(other.weights(), run.weights())
    assert other.read("evaluation.json") == run.read("evaluation.json")
    predictions, others = (parquet.read_table(each.folder / "predictions" / "model.parquet") for each in (run, other))
    assert predictions == others


def test_a_run_ends_with_what_its_model_is_worth(local: Finished):
    run, done = local
    assert done.stderr == ""
    compared_with = [line for line in done.stdout.splitlines() if line.startswith("  vs ")]
    assert [line.split()[:3] for line in compared_with] == [["vs", "mostFrequent", "F1"], ["vs", "tfidf", "F1"]]
    names = {path.name for path in (run.folder / "predictions").iterdir()}
    assert names == {"model.parquet", "mostFrequent.parquet", "tfidf.parquet"}
    compared, test = run.read("baselines.json"), run.read("evaluation.json")["test"]
    assert compared["model"]["accuracy"]["value"] == test["accuracy"]
    assert abs(compared["model"]["f1"]["value"] - test["macro"]["f1"]) < 1e-9
    assert "Was it worth training?" in (run.folder / "report.html").read_text()
    assert [line for line in run.again().splitlines() if line.startswith("  vs ")] == compared_with


def test_the_same_command_again_says_that_it_has_finished(finished: Finished):
    run, _ = finished
    before = (run.folder / "summary.json").read_bytes()
    assert "has already finished; --fresh trains it again" in run.again()
    assert (run.folder / "summary.json").read_bytes() == before
