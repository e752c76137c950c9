"""Tables, spans and vectors: each trained by a TrainJob, and asked on this machine."""

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from e2e.object_store import BUCKET
from e2e.train_jobs import TrainJobs
from trainjob import Predictor

ENCODER = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 300}
ROWS = {"train": 400, "test": 100}


class Kind(NamedTuple):
    """A kind of model with its data."""

    rows: list[dict[str, Any]]
    """A row of each set, by the names of its columns."""
    model: dict[str, Any]
    dataset: dict[str, Any]
    metric: str
    at_least: float
    baselines: dict[str, Any]


def _table(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Numbers with gaps, categories, dates and texts; the class follows from a number and a word."""
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        size, word = chance.gauss(0, 1), chance.choice(["good", "bad"])
        rows.append(
            {
                "size": "" if chance.random() < 0.05 else f"{size:.3f}",
                "color": chance.choice(["red", "green", "blue"]),
                "seen": f"2026-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}",
                "remark": " ".join([word, *(f"word{chance.randrange(40)}" for _ in range(6))]),
                "label": "yes" if size + (word == "good") > 0.5 else "no",
            }
        )
    return rows


def _spans(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Sentences with the name of a town and of a person in most of them."""
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        words = [f"word{chance.randrange(40)}" for _ in range(8)]
        spans: list[list[Any]] = []
        for at, kind in ((2, "town"), (5, "person")):
            if chance.random() < 0.8:
                words[at] = f"{kind}{chance.randrange(5)}"
                start = len(" ".join(words[:at])) + 1
                spans.append([start, start + len(words[at]), kind])
        rows.append({"text": " ".join(words), "label": spans})
    return rows


def _pairs(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Two texts about the same two subjects."""
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        subjects = [f"subject{chance.randrange(30)}" for _ in range(2)]
        texts = (" ".join([*subjects, *(f"word{chance.randrange(40)}" for _ in range(4))]) for _ in range(2))
        rows.append(dict(zip(("question", "answer"), texts, strict=True)))
    return rows


KINDS = {
    "table": Kind(
        _table(random.Random(0), sum(ROWS.values())),
        {"tableClassifier": {"tabm": {"hiddenSize": 32, "members": 4}, "text": {"encoder": ENCODER}}},
        {"label": "label", "columns": {"remark": "text"}},
        "test_accuracy",
        0.8,
        {"lightgbm": {}},
    ),
    "spans": Kind(
        _spans(random.Random(0), sum(ROWS.values())),
        {"tokenClassifier": {"encoder": ENCODER}},
        {"text": ["text"], "label": "label"},
        "test_f1",
        0.8,
        {},
    ),
    "vectors": Kind(
        _pairs(random.Random(0), sum(ROWS.values())),
        {"textEmbedder": {"encoder": ENCODER}},
        {"text": ["question"], "textPair": ["answer"]},
        "test_mrr",
        0.3,
        {},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_model_is_trained_on_two_pods_and_answers(name: str, jobs: TrainJobs, tmp_path: Path) -> None:
    kind = KINDS[name]
    is_csv = name != "spans"
    sets = {"train": kind.rows[: ROWS["train"]], "test": kind.rows[ROWS["train"] :]}
    for each, rows in sets.items():
        _write(tmp_path / "data" / f"{each}.{'csv' if is_csv else 'jsonl'}", rows)
    folder = f"{BUCKET}/{name}"
    jobs.store.upload(tmp_path / "data", folder)
    uris = {each: {"uri": f"s3://{folder}/{each}.{'csv' if is_csv else 'jsonl'}"} for each in sets}
    jobs.submit(
        model=kind.model,
        dataset=uris | kind.dataset,
        training={"epochs": 8, "batchSize": 16, "optimizer": {"adamW": {"learningRate": 5.0e-3}}},
        checkpoints={},
        baselines=kind.baselines,
    )
    training = jobs.until_phase("Succeeded")["training"]
    assert training["evaluation"][kind.metric] > kind.at_least
    jobs.trainjob("pull", "job", str(tmp_path / "pulled"))
    row = {column: value for column, value in kind.rows[-1].items() if column not in ("label", "answer")}
    assert Predictor.load(tmp_path / "pulled").predict([row])


def _write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="") as opened:
        if file.suffix == ".jsonl":
            opened.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            writer = csv.DictWriter(opened, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
