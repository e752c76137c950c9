"""A run with several labels a row: the validation rows choose thresholds, which the model keeps and all use."""

import json
from pathlib import Path

import numpy as np
from pyarrow import parquet
from training_runs import write_trainjob

from trainjob import Predictor
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.labels import LabelsScores
from trainjob.storage import Folder

ENCODER = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 120}


def write_lists(file: Path, rows: int, seed: int) -> Path:
    chance, lines = np.random.default_rng(seed), list[str]()
    for _ in range(rows):
        labels = [name for name, share in (("red", 0.6), ("blue", 0.25)) if chance.random() < share]
        words = [f"{name}{chance.integers(4)}" for name in labels] + [f"word{chance.integers(30)}" for _ in range(3)]
        lines.append(json.dumps({"text": " ".join(map(str, chance.permutation(words))), "tags": labels}))
    file.write_text("\n".join(lines))
    return file


def test_the_thresholds_of_the_best_checkpoint_are_kept_with_the_model(tmp_path: Path) -> None:
    sets = {
        name: {"uri": str(write_lists(tmp_path / f"{name}.jsonl", 200, n))} for n, name in enumerate(["train", "test"])
    }
    spec = {
        "model": {"textClassifier": {"encoder": ENCODER, "maxLength": 16}},
        "dataset": {**sets, "text": ["text"], "label": "tags", "loader": "dataLoader"},
        "training": {"epochs": 2, "batchSize": 16},
        "checkpoints": {"metric": "validation_micro_f1"},
        "workers": {"count": 2},
        "baselines": {},
        "storage": {"uri": "runs"},
    }
    run = write_trainjob(tmp_path, "tags", spec)
    run.finish()
    evaluation = run.read("evaluation.json")
    thresholds = run.read("model/preprocessor.json")["thresholds"]
    assert [each["name"] for each in evaluation["test"]["perLabel"]] == ["blue", "red"]
    for name in ("validation", "test"):
        assert [each["threshold"] for each in evaluation[name]["perLabel"]] == thresholds
    assert thresholds != [0.5, 0.5]

    predictor = Predictor.load(run.folder)
    texts = [json.loads(line)["text"] for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    kept = parquet.read_table(run.folder / "predictions" / "model.parquet")
    assert predictor.predict(texts) == kept["prediction"].to_pylist()
    scores = evaluate(Folder(str(run.folder)), str(tmp_path / "test.jsonl"))
    assert isinstance(scores, LabelsScores)
    assert scores.f1.value == evaluation["test"]["f1"]["value"]
    assert "Labels that occur together, test" in (run.folder / "report.html").read_text()
