"""The report's section on wrong predictions."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from report_runs import TEXT_JOB, Page, finish, predict, write_run
from trainjob.errors import UserError
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.predictions import prediction_table
from trainjob.report.mistakes import common_folder
from trainjob.report.render import render
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder


def probabilities(spam: list[float]) -> np.ndarray:
    return np.array([[1 - each, each] for each in spam])


@pytest.fixture
def run(tmp_path: Path) -> Folder:
    run = write_run(tmp_path, TEXT_JOB, [])
    finish(run, ["ham", "spam"])
    return run


def test_the_surest_mistakes_come_first(run: Folder) -> None:
    files, rows = ["/data/a.csv", "/data/a.csv", "/data/b/c.csv", "/data/b/c.csv"], [1, 2, 1, 1234]
    texts = ["right", "<b>money</b>\x00", "", "x" * 999]
    predicted = probabilities([0.1, 0.9, 0.75, 0.01])
    predict(run, ["ham", "spam"], np.array([0, 0, 0, 1]), predicted, file=files, file_row=rows, text=texts)
    page = Page(render(run))
    assert "3 of 4 test rows are predicted wrong." in page.text
    assert page.items == [
        f"Predicted ham (99.0%), labeled spam {'x' * 240}… More of it {'x' * 999} b/c.csv, row 1,234",
        "Predicted spam (90.0%), labeled ham <b>money</b>\N{REPLACEMENT CHARACTER} a.csv, row 2",
        "Predicted spam (75.0%), labeled ham no text b/c.csv, row 1",
    ]
    assert "The files are in /data/." in page.text


def test_no_mistakes(run: Folder) -> None:
    predict(run, ["ham", "spam"], np.array([0, 1]), probabilities([0.1, 0.9]), file=["a", "a"], file_row=[1, 2])
    page = Page(render(run))
    assert "No mistakes: all 2 test rows are predicted right." in page.text
    assert page.items == []


def test_of_many_mistakes_the_surest_are_shown(run: Folder) -> None:
    spam = np.linspace(0.5001, 0.9999, 30_000)
    texts = pa.array(["long " * 200]).take(pa.array(np.zeros(len(spam), np.int64)))
    sources = {"file": ["/mail.csv"] * len(spam), "file_row": np.arange(1, len(spam) + 1), "text": texts}
    predict(run, ["ham", "spam"], np.zeros(len(spam), np.int64), probabilities(spam.tolist()), **sources)
    html = render(run)
    page = Page(html)
    assert len(html) < 120_000
    assert "30,000 of 30,000 test rows are predicted wrong. Of these, the model is surest of" in page.text
    ends = [item.rpartition(" ")[2] for item in page.items]
    assert ends == [f"{row:,}" for row in range(30_000, 30_000 - MAX_WORST_ROWS, -1)]


def test_predictions_of_earlier_versions_do_without_sources(run: Folder) -> None:
    kept = prediction_table(
        np.arange(3), np.array([0, 1, 1]), ["ham", "spam"], np.array([0.9, 0.8, 0.7]), np.array([0, 0, 1])
    )
    write_predictions(run, "model", kept)
    page = Page(render(run))
    assert page.items == ["Predicted spam (80.0%), labeled ham predictions/model.parquet, row 1"]
    assert "That file does not say where its rows come from." in page.text


def test_thumbnails_are_shown_beside_the_mistakes(run: Folder) -> None:
    sources = {"file": ["/cats/1.png"], "file_row": pa.array([None], pa.int64()), "thumbnail": [b"\xff\xd8\xff"]}
    predict(run, ["ham", "spam"], np.array([0]), probabilities([0.9]), **sources)
    page = Page(render(run))
    assert page.attributes("src") == ["data:image/jpeg;base64,/9j/"]
    assert page.items == ["Predicted spam (90.0%), labeled ham 1.png"]


def test_nothing_is_shown_before_the_run_has_finished(run: Folder) -> None:
    predict(run, ["ham", "spam"], np.array([0]), probabilities([0.9]))
    run.delete("summary.json")
    assert "mistakes" not in Page(render(run)).headings


def test_damaged_predictions_are_named(run: Folder) -> None:
    run.write("predictions/model.parquet", b"PAR1 and no more")
    with pytest.raises(UserError, match=r"predictions/model\.parquet is damaged"):
        render(run)


def test_damaged_texts_are_named(run: Folder) -> None:
    texts = [str(number) * 50 for number in range(100)]
    wrong = probabilities([0.9] * 100)
    predict(run, ["ham", "spam"], np.zeros(100, np.int64), wrong, file=["a"] * 100, file_row=range(100), text=texts)
    content = bytearray(run.read("predictions/model.parquet"))
    columns = pq.read_metadata(pa.BufferReader(bytes(content))).row_group(0).to_dict()["columns"]
    start = next(each["dictionary_page_offset"] for each in columns if each["path_in_schema"] == "text")
    content[start : start + 60] = b"\xff" * 60
    run.write("predictions/model.parquet", bytes(content))
    with pytest.raises(UserError, match=r"predictions/model\.parquet is damaged"):
        render(run)


def test_the_common_folder() -> None:
    assert common_folder(["s3://b/cats/1.png", "s3://b/cows/1.png"]) == "s3://b/"
    assert common_folder(["/d/a.csv", "/d/a.csv"]) == "/d/"
    assert common_folder(["/d/a.csv", "s3://b/a.csv"]) == ""
    assert common_folder(["s3://a/a.csv", "s3://b/a.csv"]) == ""
    assert common_folder(["/a/a.csv", "/b/a.csv"]) == ""
    assert common_folder([]) == ""
