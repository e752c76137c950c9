"""A run that is compared with baselines."""

import csv
from collections.abc import Callable
from pathlib import Path

from training_runs import Run

NewRun = Callable[..., Run]


def test_a_run_ends_with_what_its_model_is_worth(new_run: NewRun):
    run = new_run("text", {"dataset.loader": "dataLoader", "training.epochs": 1, "baselines": None})
    done = run.finish()
    assert done.stderr == ""
    lines = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("  vs ")]
    assert lines == [["vs", "mostFrequent", "F1"], ["vs", "tfidf", "F1"]]
    assert {path.name for path in (run.folder / "predictions").iterdir()} == {
        "model.parquet",
        "mostFrequent.parquet",
        "tfidf.parquet",
    }
    compared, test = run.read("baselines.json"), run.read("evaluation.json")["test"]
    assert compared["model"]["accuracy"]["value"] == test["accuracy"]
    assert abs(compared["model"]["f1"]["value"] - test["macro"]["f1"]) < 1e-9
    assert "Was it worth training?" in (run.folder / "report.html").read_text()
    again = run.finish().stdout.splitlines()
    assert [line for line in done.stdout.splitlines() if line.startswith("  vs ")] == [
        line for line in again if line.startswith("  vs ")
    ]
    run.finish("--set", "spec.baselines={}")  # may change: the model stays what it is
    fresh = run.finish("--fresh", "--set", "spec.baselines={}")
    assert " vs " not in fresh.stdout
    assert not (run.folder / "baselines.json").exists()


def test_training_succeeds_whatever_becomes_of_the_baselines(new_run: NewRun, tmp_path: Path):
    """Texts of marks have no words; and a file where their predictions should go."""
    with (tmp_path / "marks.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "body", "label"])
        writer.writerows([["?" * number, "!", "ab"[number % 2]] for number in range(1, 61)])
    changes = {"dataset.train.uri": str(tmp_path / "marks.csv"), "dataset.test": None, "training.epochs": 1}
    run = new_run("text", changes | {"dataset.loader": "dataLoader", "baselines": None})
    done = run.finish()
    assert "vs tfidf         could not be computed: empty vocabulary" in done.stdout
    run.first = (
        "import trainjob.baselines.rows as rows\ndef fail(fitted): raise MemoryError('no room')\nrows.most_rows = fail"
    )
    done = run.finish("--fresh")
    assert "note: the baselines could not be computed: no room; `trainjob baseline" in done.stderr
    assert "run: succeeded" in done.stdout
    assert (run.folder / "summary.json").exists()
    run.first = run.first.replace("MemoryError('no room')", "KeyboardInterrupt")
    done = run.finish("--fresh")
    assert "note: the baselines could not be computed: stopped; `trainjob baseline" in done.stderr
    assert "run: succeeded" in done.stdout
