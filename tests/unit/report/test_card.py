"""The model's card."""

import json
from pathlib import Path
from typing import Any

import yaml

from report_runs import TEXT_JOB, Page, finish, summary, write_run
from trainjob.evaluation import language_scores
from trainjob.report.card import card
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.summary import BestCheckpoint

IMAGE_JOB = TEXT_JOB.replace("textClassifier: {encoder: {layers: 1}}", "imageClassifier: {mlp: {}}").replace(
    "{uri: /data/mail.csv}, text: [body], label: kind", "{uri: /data/mail}"
)


def card_of(folder: Path, job: str, classes: tuple[str, str] = ("spam", "ham")) -> tuple[dict[str, Any], str]:
    """The card's metadata and its text."""
    run = write_run(folder, job, [])
    finish(run, list(classes))
    start, metadata, text = card(read_contents(run)).split("---\n", 2)
    assert start == ""
    return yaml.safe_load(metadata), text


def test_the_hub_reads_task_and_scores(tmp_path: Path):
    metadata, _ = card_of(tmp_path, TEXT_JOB.replace("text: [body]", "test: {uri: /data/held-back.csv}, text: [body]"))
    assert metadata["pipeline_tag"] == "text-classification"
    assert metadata["library_name"] == "transformers"
    assert "base_model" not in metadata
    [model] = metadata["model-index"]
    assert model["name"] == "mail"
    test, validation = model["results"]
    assert test["dataset"] == {"name": "held-back.csv", "type": "held-back.csv", "split": "test"}
    assert validation["dataset"]["name"] == "mail.csv"
    assert validation["dataset"]["split"] == "validation"
    assert [metric["type"] for metric in validation["metrics"]] == ["accuracy", "precision", "recall", "f1"]
    assert validation["metrics"][0] == {"type": "accuracy", "name": "Accuracy", "value": 0.85}


def test_people_read_scores_use_and_limits(tmp_path: Path):
    _, text = card_of(tmp_path, TEXT_JOB)
    assert "Text classifier, encoder trained from scratch, with 1,234,567 parameters.\n" in text
    assert "trainjob trained it on 8,000 rows of mail.csv to tell 2 classes apart (the column `kind`).\n" in text
    assert "\n| validation | 100 | 0.8500 | 0.8535 | 0.8500 | 0.8496 |\n" in text
    assert "\n| spam | 55 |" in text
    assert '$ trainjob predict FOLDER --text "…"' in text
    assert 'pipeline("text-classification", model="FOLDER")' in text
    assert "trainjob first cleans the text of the column `body`.\n" in text
    assert "\n\n\n" not in text


def test_a_list_of_files_is_named_by_the_first(tmp_path: Path):
    uris = ", ".join(f"'https://data.example/{number}.csv?token=c0ffee'" for number in range(7))
    metadata, text = card_of(tmp_path, TEXT_JOB.replace("uri: /data/mail.csv", f"uris: [{uris}]"))
    assert metadata["model-index"][0]["results"][0]["dataset"]["name"] == "0.csv, 1.csv, 2.csv, 3.csv, 4.csv and 2 more"
    assert "c0ffee" not in text


def test_an_image_classifier(tmp_path: Path):
    metadata, text = card_of(tmp_path, IMAGE_JOB)
    assert metadata["pipeline_tag"] == "image-classification"
    assert "Image classifier, MLP" in text
    assert "--image image.png" in text
    assert metadata["library_name"] == "trainjob"
    assert "No other library loads it" in text


def test_other_libraries_that_load_it_are_named(tmp_path: Path):
    pretrained = IMAGE_JOB.replace("mlp: {}", "pretrained: org/vit")
    metadata, text = card_of(tmp_path / "image", pretrained)
    assert metadata["library_name"] == "transformers"
    assert "AutoModelForImageClassification" in text


def test_an_adapters_parameters_are_told_from_the_decoders(tmp_path: Path):
    of_model = "causalLM: {pretrained: org/decoder, lora: {}}"
    job = TEXT_JOB.replace("textClassifier: {encoder: {layers: 1}}", of_model).replace(", label: kind", "")
    run = write_run(tmp_path, job, [])
    scores = language_scores(100.0, 50).model_dump(by_alias=True)
    run.write("evaluation.json", json.dumps({"validation": scores, "test": None}).encode())
    best = BestCheckpoint(step=20, epoch=2, metric="validation_loss", value=2.0)
    counts = {"parameters": 157_248, "trained_parameters": 16_384, "rows": {"train": 8000}, "precision": "bf16"}
    run.write("summary.json", summary(best_checkpoint=best, **counts))
    text = card(read_contents(run))
    assert "library_name: peft" in text
    assert "with 157,248 parameters, 16,384 of which were trained.\ntrainjob trained it on 8,000 rows" in text
    assert "AutoPeftModelForCausalLM" in text
    assert Page(render(run)).terms["Parameters"] == "157,248 (16,384 trained)"


def test_an_encoder_of_the_hub_is_the_base_model(tmp_path: Path):
    of_hub = TEXT_JOB.replace("encoder: {layers: 1}", "pretrained: org/encoder")
    assert card_of(tmp_path, of_hub)[0]["base_model"] == "org/encoder"
    assert "base_model" not in card_of(tmp_path, of_hub.replace("org/encoder", "/models/encoder"))[0]


def test_where_data_lies_is_not_published(tmp_path: Path):
    secret = TEXT_JOB.replace("/data/mail.csv", '"https://host/team/mail.csv?token=secret"')
    metadata, text = card_of(tmp_path, secret)
    assert metadata["model-index"][0]["results"][0]["dataset"]["name"] == "mail.csv"
    assert "secret" not in f"{metadata}{text}"
    assert "host" not in text


def test_no_class_breaks_its_table(tmp_path: Path):
    _, text = card_of(tmp_path, TEXT_JOB, ("a|b\n# c", "<script>*{{ x }}"))
    assert "\n| a\\|b \\# c | 55 |" in text
    assert "\n| \\<script\\>\\*\\{\\{ x \\}\\} | 45 |" in text
