"""Files of any content given to `predict` and `evaluate`: all of their rows, or a UserError that names the file.

`make soak` tries many more.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from odd_files import COLUMNS, ROWS, TABLES, idx_files, image_files
from predictor_runs import make_run
from soak import examples
from trainjob import Predictor
from trainjob.api import Source
from trainjob.cli.evaluate import evaluate
from trainjob.cli.predict import predict
from trainjob.data.read.counted_reading import read_all
from trainjob.data.read.source import parts
from trainjob.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore:.*no row has the label:trainjob.errors.Notice")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    """Each run's model is loaded once for all examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictor, "load", cache(Predictor.load))
        yield


@pytest.fixture(scope="module")
def text_run(folder: Path) -> Path:
    path = folder / "texts.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "other"), *ROWS])
    encoder = {"layers": 1, "hiddenSize": 8, "heads": 1, "vocabularySize": 200}
    model = {"textClassifier": {"encoder": encoder, "maxLength": 8}}
    data = {"train": {"uri": str(path)}, "text": ["text"], "label": "label", "validation": {"fraction": 0.3}}
    return make_run(folder / "text-run", {"model": model, "dataset": data})


@pytest.fixture(scope="module")
def image_run(folder: Path) -> Path:
    for name in ("0", "1"):
        (folder / "images" / name).mkdir(parents=True)
        for index in range(4):
            Image.new("L", (6, 5), index).save(folder / "images" / name / f"{index}.png")
    model = {"imageClassifier": {"cnn": {"channels": [2], "hidden": 2}, "size": {"height": 5, "width": 6}}}
    return make_run(folder / "image-run", {"model": model, "dataset": {"train": {"uri": str(folder / "images")}}})


def rows_of(uri: Path, read: Callable[[], int]) -> int | None:
    """The number of rows, or None if the file is refused by its name."""
    try:
        return read()
    except UserError as error:
        if str(uri.parent) not in str(error):
            pytest.fail(f"which file? {error}")
        return None


def predicted(run: Path, uri: Path, output: Path) -> int:
    with redirect_stdout(io.StringIO()) as said:
        predict(str(run), str(uri), output=output)
    return int(said.getvalue().split()[0].replace(",", ""))


def evaluated(run: Path, uri: Path) -> int:
    with redirect_stdout(io.StringIO()) as said:
        evaluate(str(run), str(uri), as_json=True)
    return json.loads(said.getvalue())["rows"]


def check(run: Path, uri: Path, columns: list[str], output: Path) -> None:
    def read() -> int:
        return sum(len(rows.table) for rows in read_all(parts(Source(uri=str(uri)), None), columns))

    rows = rows_of(uri, read)
    scored = rows_of(uri, lambda: evaluated(run, uri))
    written = rows_of(uri, lambda: predicted(run, uri, output))
    assert scored in (rows, None)
    assert None in (written, rows) or written == rows


@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_columns_of_any_type(text_run: Path, kind: str):
    try:
        assert len(Predictor.load(text_run).predict(pa.table({"text": COLUMNS[kind]}))) == len(ROWS)
    except UserError as error:
        if 'row 1: column "text" ' not in str(error):
            pytest.fail(f"where? {error}")


OUTPUTS = st.sampled_from(["out.csv", "out.parquet"])


@pytest.mark.filterwarnings("ignore:left out of the output:trainjob.errors.Notice")
@examples(30)
@given(TABLES, OUTPUTS)
def test_tables(text_run: Path, folder: Path, file: tuple[str, bytes], output: str):
    name, content = file
    (folder / name).write_bytes(content)
    check(text_run, folder / name, ["text"], folder / output)


@examples(10)
@given(image_files(), OUTPUTS)
def test_images(
    image_run: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes], output: str
):
    name, content = file
    uri = tmp_path_factory.mktemp("some")
    (uri / "1").mkdir()
    (uri / "1" / name).write_bytes(content)
    Image.new("RGB", (6, 5)).save(uri / "1" / "good.png")
    check(image_run, uri, ["image"], folder / output)


@examples(20)
@given(idx_files(), OUTPUTS)
def test_idx(image_run: Path, folder: Path, files: tuple[bytes, bytes], output: str):
    for kind, content in zip(("images-idx3", "labels-idx1"), files, strict=True):
        (folder / f"train-{kind}-ubyte").write_bytes(content)
    check(image_run, folder / "train-images-idx3-ubyte", ["image"], folder / output)
