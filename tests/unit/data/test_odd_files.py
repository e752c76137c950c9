"""Files of any content: training's rows, all of them, or a DataError that names the file.

`make soak` tries many more.
"""

import codecs
import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from data_specs import image_spec, random_images, text_spec, write_images
from hypothesis import given

from odd_files import ROWS, TABLES, idx_files, image_files
from soak import examples
from trainjob.api import Source, TrainJobSpec
from trainjob.data import fit, prepare_examples
from trainjob.data.read.counted_reading import read_all
from trainjob.data.read.source import parts
from trainjob.errors import DataError

TRAIN = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


def rows_of(uri: Path, read: Callable[[], int]) -> int | None:
    """The number of rows, or None if the file, its neighbor or its rows are refused by name."""
    try:
        return read()
    except DataError as error:
        if not str(error).startswith((str(uri.parent), f"spec.dataset.train ({uri.parent}")):
            pytest.fail(f"which file? {error}")
        return None


def prepared(spec: TrainJobSpec) -> int:
    """Rows that train and rows set aside."""
    fitted = fit(spec)
    found = {name: len(some) for name, some in prepare_examples(spec, fitted).items()}
    assert found == fitted.rows
    return sum(found.values())


def count(uri: Path, columns: list[str] | None) -> int:
    return sum(len(rows.table) for rows in read_all(parts(Source(uri=str(uri)), None), columns))


def check(uri: Path, spec: TrainJobSpec, columns: list[str]) -> int | None:
    """The number of rows, equal for both ways of reading; None if the file is refused."""
    rows = rows_of(uri, lambda: count(uri, columns))
    trained = rows_of(uri, lambda: prepared(spec))
    assert trained is None or trained == rows
    if trained is None and spec.dataset is not None:  # what can be used is used, by each pass alike
        dataset = spec.dataset.model_copy(update={"on_bad_rows": "drop"})
        rows_of(uri, lambda: prepared(spec.model_copy(update={"dataset": dataset})))
    raw = rows_of(uri, lambda: count(uri, None))
    assert None in (raw, rows) or raw == rows
    return rows


def csv_rows(content: bytes) -> int:
    """The number of rows that Python's own reader finds, without blank lines."""
    text = content.decode("utf-8-sig", "replace")
    tables = [list(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=sign))) for sign in ",;\t"]
    return len(next((table for table in tables if len(table[0]) > 1), tables[0])) - 1


def json_rows(content: bytes) -> int:
    return sum(bool(line.strip()) for line in content.removeprefix(codecs.BOM_UTF8).split(b"\n"))


ALL_ROWS = {"rows.csv": csv_rows, "rows.jsonl": json_rows, "rows.parquet": lambda _: len(ROWS)}


@examples(60)
@given(TABLES)
def test_tables(folder: Path, file: tuple[str, bytes]):
    name, content = file
    uri = folder / name
    uri.write_bytes(content)
    rows = check(uri, text_spec(uri, validation={"fraction": 0.3}), ["text", "label"])
    assert rows is None or rows == ALL_ROWS[name](content), "rows are lost"


@examples(20)
@given(image_files())
def test_images(tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes]):
    name, content = file
    uri = tmp_path_factory.mktemp("images")
    write_images(uri, {label: random_images(3, (5, 6)) for label in ("a", "b")})
    (uri / "a" / name).write_bytes(content)
    check(uri, image_spec(uri, size=(5, 6)), ["image", "label"])


@examples(60)
@given(idx_files())
def test_idx(folder: Path, files: tuple[bytes, bytes]):
    for name, content in zip(TRAIN, files, strict=True):
        (folder / name).write_bytes(content)
    check(folder / TRAIN[0], image_spec(folder / TRAIN[0]), ["image", "label"])
