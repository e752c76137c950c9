import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import csv
from sklearn.metrics import confusion_matrix, f1_score
from torch.nn import functional
from typer.testing import CliRunner

from predictor_runs import finish
from trainjob import Predictor
from trainjob.cli.app import app
from trainjob.cli.evaluate import evaluate
from trainjob.errors import Alarm, Notice, UserError
from trainjob.evaluation import ClassificationScores, Confusion
from trainjob.precision import multiplies_bfloat16
from trainjob.storage import Folder


def test_scores_of_texts_equal_those_of_the_predictions(
    text_run: Path, text_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(Notice, match="the rows that the model was trained on: these scores say little about others"):
        evaluate(str(text_run), str(text_csv), as_json=True)
    scores = ClassificationScores.model_validate_json(capsys.readouterr().out)

    rows = csv.read_csv(text_csv)
    predictor = Predictor.load(text_run)
    probabilities, labels = predictor.predict_proba(rows), rows["tag"].to_pylist()
    predictions = predictor.predict(rows)
    chosen = probabilities[np.arange(len(labels)), [predictor.classes.index(label) for label in labels]]
    assert scores.rows == 40
    assert scores.loss == pytest.approx(-np.log(chosen).mean(), rel=1e-5), "both classes weigh 1: they are of one size"
    assert scores.confusion == Confusion.of_matrix(confusion_matrix(labels, predictions))
    assert scores.macro.f1 == pytest.approx(f1_score(labels, predictions, average="macro"))


@pytest.mark.filterwarnings("ignore:.*trained on:trainjob.errors.Notice")
def test_scores_of_images_are_shown_as_a_table(
    image_run: Path, image_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(str(image_run), str(image_folder))
    shown = capsys.readouterr().out
    paths = sorted(image_folder.glob("*/*.png"))
    predictions = Predictor.load(image_run).predict(paths)
    accuracy = np.mean([path.parent.name == prediction for path, prediction in zip(paths, predictions, strict=True)])
    assert f"20 rows: accuracy {accuracy:.4f}" in shown
    for name in ("bright", "dark", "macro average", "weighted average"):
        assert name in shown


def test_what_cannot_be_scored_is_said(tmp_path: Path, text_run: Path, text_csv: Path, image_folder: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run's folder: expected trainjob\.yaml there, found config\.json"):
        evaluate(str(text_run / "model"), str(text_csv))
    with pytest.raises(UserError, match="has images, but"):
        evaluate(str(text_run), str(image_folder))
    rows = tmp_path / "rows.csv"
    rows.write_text("title,body,tag\nx,a cat,animals\n")
    with pytest.raises(UserError, match=r"rows\.csv, row 1.*animals.*did you mean .*animal"):
        evaluate(str(text_run), str(rows))
    rows.write_text("title,body,tag\nx,a cat,\ny,an oak,plant\nz,a dog,\nw,an elm,plants\n")
    with pytest.raises(UserError) as error:
        evaluate(str(text_run), str(rows))
    assert f'{rows}: 3 rows cannot be used\n  2 rows: the label (column "tag") is empty: ' in str(error.value)
    assert 'row 4: the label "plants" does not occur in the training rows; did you mean "plant"?' in str(error.value)
    rows.write_text("title,body\nx,a cat\n")
    with pytest.raises(UserError, match='no column "tag"'):
        evaluate(str(text_run), str(rows))
    rows.write_text("title,body,tag\n")
    with pytest.raises(UserError, match="has no rows"):
        evaluate(str(text_run), str(rows))


def test_classes_without_rows_are_named(tmp_path: Path, text_run: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("title,body,tag\nx,a cat,animal\ny,a dog,animal\n")
    with pytest.warns(Notice) as told:
        evaluate(str(text_run), str(rows))
    [note] = told
    assert str(note.message) == (
        f'{rows}: no row has the label "plant"; a label without rows counts as 0 in macro averages'
    )


@pytest.mark.filterwarnings("ignore:.*trained on:trainjob.errors.Notice")
def test_a_run_that_drops_rows_scores_the_others(
    tmp_path: Path, text_run: Path, text_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(text_run, run)
    job = (run / "trainjob.yaml").read_text()
    (run / "trainjob.yaml").write_text(job.replace("onBadRows: fail", "onBadRows: drop"))
    rows = tmp_path / "rows.csv"
    header, *lines = text_csv.read_text().splitlines()
    rows.write_text("\n".join([header, "only one value", *lines]))
    with pytest.warns(Notice, match=rf"{rows}: left out 1 of 41 rows: {rows}, row 1: the row does not have \d values"):
        evaluate(str(run), str(rows), as_json=True)
    capsys.readouterr()
    rows.write_text("\n".join([header, "only one value", *lines, "another one"]))
    with pytest.warns(Notice, match=rf"{rows}: left out 2 of 42 rows: the row does not have \d .*: {rows}, row 1"):
        evaluate(str(run), str(rows), as_json=True)
    scores = ClassificationScores.model_validate_json(capsys.readouterr().out)
    evaluate(str(text_run), str(text_csv), as_json=True)
    assert scores == ClassificationScores.model_validate_json(capsys.readouterr().out)


def test_rows_of_labels_that_the_model_has_not_learned_are_named_or_left_out(tmp_path: Path, text_run: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("tag,body,title\nanimal,a cat,x\nstone,a rock,y\nplant,an oak,z\nmineral,an ore,w\n")
    command = ["evaluate", str(text_run), str(rows)]
    refused = CliRunner().invoke(app, command)
    assert str(refused.exception) == (
        f"{rows}: 2 rows cannot be used\n"
        "  2 rows: the label does not occur in the training rows (known labels are animal, plant): "
        f'{rows}, row 2: "stone"; row 4: "mineral"\n'
        "Correct these rows, or have them left out with `--on-bad-rows drop`."
    )
    with rows.open("a") as more:
        more.write("only one value\n")
    with pytest.warns(Alarm) as told:
        scored = CliRunner().invoke(app, [*command, "--on-bad-rows", "drop"])
    assert str(told[0].message) == (
        f"{rows}: left out 3 of 5 rows, so the scores may say little about new rows:\n"
        "  2 rows: the label does not occur in the training rows (known labels are animal, plant): "
        f'{rows}, row 2: "stone"; row 4: "mineral"\n'
        f"  {rows}, row 5: the row does not have 3 values, as the header has, but 1"
    )
    assert scored.stdout.startswith("2 rows: accuracy")
    rows.write_text("tag,body,title\nstone,a rock,y\n")
    with pytest.raises(UserError, match=r"rows\.csv has no rows that can be used"), pytest.warns(Notice):
        evaluate(str(text_run), str(rows), on_bad_rows="drop")


@pytest.mark.parametrize("precision", ["bf16", "fp16", "float32"])
def test_scores_are_computed_as_the_run_was_scored_or_it_is_said(
    precision: str,
    tmp_path: Path,
    text_run: Path,
    text_csv: Path,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    """float32 takes the place of a precision that the processor has no units for, as fp16 on a CPU."""
    run = shutil.copytree(text_run, tmp_path / "run")
    finish(Folder(str(run)))
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"precision": precision}))
    evaluate(str(run), str(text_csv), as_json=True)
    loss = ClassificationScores.model_validate_json(capsys.readouterr().out).loss
    used = "bf16" if precision == "bf16" and multiplies_bfloat16(torch.device("cpu")) else "float32"
    said = [str(notice.message) for notice in recwarn if notice.category is Notice]
    assert any("scored in float32" in text and f"the run scored in {precision}" in text for text in said) == (
        precision != used
    )
    rows, predictor = csv.read_csv(text_csv), Predictor.load(run)
    labels = torch.tensor([predictor.classes.index(label) for label in rows["tag"].to_pylist()])
    with torch.autocast("cpu", torch.bfloat16, enabled=used == "bf16"):
        expected = functional.cross_entropy(predictor.outputs(rows), labels).item()
    assert loss == pytest.approx(expected, rel=1e-5)
