"""Runs side by side."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from report_runs import FUNCTION_JOB, TEXT_JOB, Page, epoch, finish, step, write_run
from trainjob.cli.app import app
from trainjob.errors import UserError
from trainjob.evaluation import Confusion, classification_scores
from trainjob.evaluation.predictions import prediction_table
from trainjob.evaluation.scores.numbers import number_scores
from trainjob.formatting import MISSING
from trainjob.report.compare import compare, differences, remarks, render_comparison, score_table
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder

CLASSES = ["ham", "spam"]
LABELS = np.arange(200) % 2
REGRESSION = number_scores(np.arange(200.0), np.arange(200.0) + 1, 20.0).model_dump(mode="json", by_alias=True)
NONE_KEPT = "has no predictions to compare (unfinished, or of a kind of model that keeps none)"


def run_of(
    folder: Path,
    name: str,
    right: int,
    changes: tuple[str, str] = ("", ""),
    epochs: int = 3,
    digest: str = "3f2a",
    seed: int = 0,
) -> Folder:
    """A finished run whose model has the first so many of 200 validation rows right. `digest` is that of its source,
    and `seed` that of its split."""
    records = [step(n, loss=2.0 / n) for n in range(1, 10 * epochs + 1)]
    records += [epoch(n, train_loss=1.0 / n, validation_f1=0.2 * n) for n in range(1, epochs + 1)]
    run = write_run(folder / name, TEXT_JOB.replace("mail", name, 1).replace(*changes), records)
    finish(run, CLASSES)
    predicted = np.where(np.arange(200) < right, LABELS, 1 - LABELS)
    confusion = np.zeros((2, 2), np.int64)
    np.add.at(confusion, (LABELS, predicted), 1)
    found = classification_scores(Confusion.of_matrix(confusion), 20.0, CLASSES).model_dump(mode="json", by_alias=True)
    run.write("evaluation.json", json.dumps({"validation": found, "test": None}).encode())
    write_predictions(run, "model", prediction_table(np.arange(200), predicted, CLASSES, None, LABELS))
    run.write("fitted/split.json", json.dumps({"contents": {"train": digest}, "split": {"seed": seed}}).encode())
    return run


def cells(runs: list[Folder]) -> list[dict[str, str]]:
    table = score_table(compare(runs))
    return [{name: values[number] for name, values in table} for number in range(len(runs))]


def test_what_differs_is_told_by_field(tmp_path: Path) -> None:
    first = run_of(tmp_path, "first", 150)
    second = run_of(tmp_path, "second", 150, ("epochs: 4}", "epochs: 9, earlyStopping: {patience: 2}}"))
    assert differences(compare([first, second])) == [
        ("spec.training.epochs", ["4", "9"]),
        ("spec.training.earlyStopping.patience", [MISSING, "2"]),
        ("spec.training.earlyStopping.minDelta", [MISSING, "0.0"]),
    ]
    assert differences(compare([first, run_of(tmp_path, "third", 100)])) == []


def test_a_lead_over_the_first_is_told_on_the_same_rows(tmp_path: Path) -> None:
    first, better = run_of(tmp_path, "first", 150), run_of(tmp_path, "better", 190)
    other = run_of(tmp_path, "other", 190, ("/data/mail.csv", "/data/else.csv"))
    lines = cells([first, better, other])
    assert [line["Verdict"] for line in lines] == [MISSING, "better", MISSING]
    assert lines[0]["Accuracy"].startswith("0.7500 [0.6")
    assert lines[1]["Lead over the first in F1"].startswith("+0.2000 [+0.1")
    assert [line["Set"] for line in lines] == ["validation"] * 3
    assert lines[0]["Parameters"] == "1,234,567"
    assert lines[0]["Trained in"] == "1 min 30 s"
    assert cells([better, first])[1]["Verdict"] == "worse"


@pytest.mark.parametrize(("digest", "seed"), [("91c0", 0), ("3f2a", 1)], ids=["other columns", "another seed"])
def test_another_split_has_other_rows(tmp_path: Path, digest: str, seed: int) -> None:
    """Sorted by class, their labels may be the same nevertheless."""
    first, second = run_of(tmp_path, "first", 150), run_of(tmp_path, "second", 190, digest=digest, seed=seed)
    assert "Verdict" not in cells([first, second])[1], "a line of dashes is left out"
    assert "second has no lead over first: other validation rows were set aside" in render_comparison(
        compare([first, second])
    )


@pytest.mark.parametrize(("seed", "verdict"), [(1, None), (7, "better")])
def test_runs_that_have_not_recorded_their_rows_are_compared_by_their_seed(
    tmp_path: Path, seed: int, verdict: str | None
) -> None:
    """As runs of earlier versions."""
    first, second = (run_of(tmp_path, name, right) for name, right in (("first", 150), ("second", 190)))
    for run, number in ((first, 7), (second, seed)):
        run.delete("fitted/split.json")
        spec = run.read("trainjob.yaml").replace(b"epochs: 4}", f"epochs: 4, seed: {number}}}".encode())
        run.write("trainjob.yaml", spec)
    assert cells([first, second])[1].get("Verdict") == verdict


def test_why_there_is_no_lead(tmp_path: Path) -> None:
    first = run_of(tmp_path, "first", 150)
    relabelled, other_file = (run_of(tmp_path, name, 190) for name in ("relabelled", "other-file"))
    swapped = prediction_table(np.arange(200), LABELS, CLASSES, None, LABELS[::-1])
    write_predictions(relabelled, "model", swapped)
    other_file.write("trainjob.yaml", other_file.read("trainjob.yaml").replace(b"/data/mail.csv", b"/data/else.csv"))
    numbers = run_of(tmp_path, "numbers", 190, ("textClassifier", "textRegressor"))
    numbers.write("evaluation.json", json.dumps({"validation": REGRESSION, "test": None}).encode())
    open_run = write_run(tmp_path / "open", TEXT_JOB.replace("mail", "open", 1), [])
    better = run_of(tmp_path, "better", 190)
    assert remarks(compare([first, better, relabelled, other_file, numbers, open_run])) == [
        "relabelled has no lead over first: its rows have other labels than those of the first run.",
        "other-file has no lead over first: it was scored on validation rows set aside from /data/else.csv, the first "
        "run on validation rows set aside from /data/mail.csv.",
        "numbers has no lead over first: it is judged by RMSE, the first run by F1.",
        f"open has no lead over first: it {NONE_KEPT}.",
    ]
    (remark,) = remarks(compare([open_run, first]))
    assert remark == f"first has no lead over open: the first run {NONE_KEPT}."


def test_a_run_under_way_and_a_function_stand_beside(tmp_path: Path) -> None:
    finished = run_of(tmp_path, "finished", 150)
    open_run = write_run(tmp_path / "open", TEXT_JOB.replace("mail", "open", 1), [])
    function = write_run(tmp_path / "function", FUNCTION_JOB, [epoch(1, bleu=20.0)])
    lines = cells([open_run, finished, function])
    assert [line["Trained in"] for line in lines] == ["not finished", "1 min 30 s", "not finished"]
    assert [line["Accuracy"] == MISSING for line in lines] == [True, False, True]
    page = Page(render_comparison(compare([open_run, finished, function])))
    assert page.tables["compared"][0] == ["Measure", "open", "finished", "own-loop"]


def test_runs_of_one_name_are_told_by_their_place(tmp_path: Path) -> None:
    first, second = (run_of(tmp_path / place, "tags", 150) for place in ("here", "there"))
    assert [run.name for run in compare([first, second])] == ["here/tags/run", "there/tags/run"]


def test_curves_lie_over_each_other(tmp_path: Path) -> None:
    """Also for runs of unequal length, and for more runs than a chart has markers."""
    runs = [run_of(tmp_path, f"run-{number}", 150, epochs=number) for number in range(1, 8)]
    html = render_comparison(compare(runs))
    page = Page(html)
    labels = [named["aria-label"] for _, named in page.elements if named.get("role") == "img"]
    assert len(labels) == 6, "three metrics, five runs on one chart and two on another"
    assert labels[0].startswith("Training loss, smoothed (1 of 2) over the course of training: run-1 from")
    assert "run-5 from 1 to 0.2" in next(label for label in labels if label.startswith("Train loss"))
    assert html.count("<svg") == 6


def test_the_command(tmp_path: Path) -> None:
    first, second = run_of(tmp_path, "first", 150), run_of(tmp_path, "second", 190, ("epochs: 4", "epochs: 5"))
    result = CliRunner().invoke(app, ["compare", first.uri, second.uri], env={"COLUMNS": "150"})
    assert result.exit_code == 0
    shown = " ".join(result.stdout.replace("│", " ").split())
    assert "spec.training.epochs 4 5" in shown
    assert f"Verdict {MISSING} better" in shown
    narrow = CliRunner().invoke(app, ["compare", first.uri, second.uri], env={"COLUMNS": "60"}).stdout
    assert "Rows\n  first   200\n  second  200\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    result = CliRunner().invoke(app, ["compare", first.uri, second.uri, "--json"])
    told = json.loads(result.stdout)
    assert told["differences"] == {"spec.training.epochs": [4, 5]}
    assert [run["name"] for run in told["runs"]] == ["first", "second"]
    assert told["runs"][0]["leadOverFirst"] is None
    assert told["runs"][1]["leadOverFirst"]["verdict"] == "better"
    assert told["runs"][1]["whyNoLead"] is None
    assert told["runs"][1]["scores"]["accuracy"] == 0.95
    file = tmp_path / "compared.html"
    result = CliRunner().invoke(app, ["compare", first.uri, second.uri, "--output", str(file)])
    assert result.stdout == f"{file}\n"
    assert Page(file.read_text()).tables["fields"][1] == ["spec.training.epochs", "4", "5"]


def test_mistakes_are_told(tmp_path: Path) -> None:
    first = run_of(tmp_path, "first", 150)
    with pytest.raises(UserError, match="give at least two runs"):
        compare([first])
    with pytest.raises(UserError, match="is given twice"):
        compare([first, Folder(first.uri + "/")])
    with pytest.raises(UserError, match="is not a run's folder"):
        compare([first, Folder(str(tmp_path))])


def test_markup_in_values_is_text(tmp_path: Path) -> None:
    first = run_of(tmp_path, "first", 150)
    second = run_of(tmp_path, "second", 150, ("text: [body]", "text: ['<i>body']"))
    html = render_comparison(compare([first, second]))
    assert "<i>body" not in html
