import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import ExifTags, Image, ImageOps
from pyarrow import csv

import trainjob
from preprocessors import input_of
from trainjob import Predictor
from trainjob.errors import DataError, UserError
from trainjob.kinds.inputs.text import TextInput
from trainjob.models import load_model


@pytest.fixture
def rows(text_csv: Path) -> pa.Table:
    return csv.read_csv(text_csv)


def test_probabilities_are_the_models_own_in_the_rows_order(text_run: Path, rows: pa.Table) -> None:
    module, preprocessor = load_model(text_run / "model")
    texts = input_of(preprocessor, TextInput)
    expected = []
    for title, body in zip(rows["title"].to_pylist(), rows["body"].to_pylist(), strict=True):
        tokens = torch.tensor([texts.tokenizer.encode(f"{title} {body}").ids])
        with torch.inference_mode():
            logits = module(input_ids=tokens, attention_mask=torch.ones_like(tokens))
        expected.append(torch.softmax(logits, dim=1)[0].numpy())

    predictor = Predictor.load(text_run)
    found = predictor.predict_proba(rows, batch_size=3)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4)
    assert len(np.unique(found[:8, 0])) == 8, "rows are told apart, so their order is seen"
    assert predictor.classes == ["animal", "plant"]
    assert predictor.predict(rows) == [predictor.classes[row.argmax()] for row in expected]


def test_rows_are_taken_in_many_forms(text_run: Path, rows: pa.Table) -> None:
    predictor = Predictor.load(text_run)
    expected = predictor.predict_proba(rows)
    texts = [f"{row['title']} {row['body']}" for row in rows.to_pylist()]
    for form in (rows.to_pylist(), rows.to_pandas(), texts, tuple(texts), np.array(texts, dtype=object)):
        assert np.array_equal(predictor.predict_proba(form), expected), type(form)
    for form in (pd.Series(texts), pa.array(texts), pa.chunked_array([texts[:5], texts[5:]]), iter(texts)):
        assert np.array_equal(predictor.predict_proba(form), expected), type(form)
    filtered = rows.to_pandas().query("tag == 'plant'")
    assert np.array_equal(predictor.predict_proba(filtered), expected[filtered.index])


def test_more_rows_than_a_window_keep_their_order(
    text_run: Path, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = Predictor.load(text_run)
    expected = predictor.predict_proba(rows)
    monkeypatch.setattr("trainjob.predictor.WINDOW_ROWS", 7)
    np.testing.assert_allclose(predictor.predict_proba(rows, batch_size=2), expected, rtol=1e-4)


def test_no_rows_have_no_predictions(text_run: Path) -> None:
    predictor = Predictor.load(text_run)
    assert predictor.predict([]) == []
    assert predictor.predict_proba([]).shape == (0, 2)
    assert predictor.predict(pa.table({"title": pa.array([], pa.string()), "body": pa.array([], pa.string())})) == []


def test_images_are_taken_in_many_forms(image_run: Path, image_folder: Path) -> None:
    predictor = Predictor.load(image_run)
    paths = sorted(image_folder.glob("*/*.png"))
    images = [Image.open(path) for path in paths]
    arrays = [np.asarray(image) for image in images]
    expected = predictor.predict_proba(paths)
    assert expected.shape == (20, 2)
    assert len(np.unique(predictor.outputs(paths)[:, 0])) == 20, "images are told apart"
    forms = ([str(path) for path in paths], images, arrays, np.stack(arrays), [array[:, :, None] for array in arrays])
    for form in forms:
        assert np.array_equal(predictor.predict_proba(form), expected)


def test_an_image_is_turned_and_laid_on_white_in_every_form(image_run: Path, tmp_path: Path) -> None:
    predictor = Predictor.load(image_run)
    clear = Image.fromarray(np.random.default_rng(1).integers(0, 256, (6, 8, 4), np.uint8))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    clear.save(tmp_path / "turned.png", exif=exif)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / "turned.png")))
    white = Image.alpha_composite(Image.new("RGBA", (6, 8), "white"), Image.fromarray(upright)).convert("RGB")
    expected = predictor.predict_proba([white])
    forms = ([tmp_path / "turned.png"], [Image.open(tmp_path / "turned.png")], [upright], upright[None])
    for form in forms:
        assert np.array_equal(predictor.predict_proba(form), expected)


def test_binary_cross_entropy_gives_a_sigmoid_for_each_class(image_run: Path, image_folder: Path) -> None:
    predictor = Predictor.load(image_run)
    paths = sorted(image_folder.glob("*/*.png"))
    logits = predictor.outputs(paths).numpy()
    np.testing.assert_allclose(predictor.predict_proba(paths), 1 / (1 + np.exp(-logits)), rtol=1e-5)


def test_it_loads_from_a_run_a_model_or_a_checkpoint(text_run: Path) -> None:
    expected = Predictor.load(text_run).predict_proba(["a cat"])
    checkpoint = text_run / "checkpoints" / "epoch-0001-step-00000001"
    shutil.copytree(text_run / "model", checkpoint)
    (checkpoint / "trainer.pt").write_bytes(b"not needed")
    for uri in (text_run / "model", str(checkpoint), f"file://{text_run}", f"file://{checkpoint}"):
        assert np.array_equal(Predictor.load(uri).predict_proba(["a cat"]), expected)


def test_a_folder_without_a_model_says_what_it_is(tmp_path: Path, text_run: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "beach.jpg").touch()
    with pytest.raises(UserError, match=r"is not a run's folder: expected model/config\.json .*, found beach\.jpg"):
        Predictor.load(tmp_path / "holiday")
    with pytest.raises(UserError, match=r"missing is not a run's folder: .* found nothing"):
        Predictor.load(tmp_path / "missing")

    shutil.move(text_run / "model", text_run / "checkpoints" / "epoch-0001-step-00000001")
    with pytest.raises(UserError, match=r"this run has not finished; continue it .*/epoch-0001-step-00000001"):
        Predictor.load(text_run)
    (text_run / "summary.json").touch()
    with pytest.raises(UserError, match="has no trainjob model: a function trained it"):
        Predictor.load(text_run)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a cat", "expected a list of rows, not one str"),
        ({"title": "a cat"}, "expected a list of rows, not one dict"),
        ([{"title": "x", "body": "y"}, {"title": "x"}], "row 2 has no body; the model takes title, body"),
        ({"a cat", "a dog"}, "expected a list of rows or a table, not set"),
        (3, "expected a list of rows or a table, not int"),
        (np.array("a cat"), "expected a list of rows or a table, not ndarray"),
        (["a cat", 3], "row 2: the model takes texts or mappings, not int"),
        ([{"title": "x", "body": "y"}, {"title": 3, "body": "y"}], "the rows do not form a table"),
        (["half of a pair: \ud800"], "the rows do not form a table: .*surrogates not allowed"),
        ([{"title": 10**30, "body": "y"}], "the rows do not form a table: .*too large"),
    ],
)
def test_rows_that_are_no_texts_are_named(text_run: Path, rows: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Predictor.load(text_run).predict(rows)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_rows(text_run: Path, batch_size: int) -> None:
    with pytest.raises(UserError, match=f"batch_size must be at least 1, got {batch_size}"):
        Predictor.load(text_run).predict(["a cat"], batch_size)


def test_a_table_without_the_columns_is_an_error(text_run: Path) -> None:
    with pytest.raises(DataError, match='no column "body"'):
        Predictor.load(text_run).predict(pd.DataFrame({"title": ["a cat"]}))


def test_rows_that_are_no_images_are_named(tmp_path: Path, image_run: Path) -> None:
    predictor = Predictor.load(image_run)
    corrupt = tmp_path / "corrupt.png"
    corrupt.write_bytes(b"no image")
    with pytest.raises(UserError, match=r"missing\.png: there is nothing here"):
        predictor.predict([tmp_path / "missing.png"])
    with pytest.raises(UserError, match=r"row 1 is not a valid image file"):
        predictor.predict([corrupt])
    with pytest.raises(UserError, match=r"row 1: an image is a uint8 array .* not float64 \[8, 6\]"):
        predictor.predict([np.zeros((8, 6))])
    with pytest.raises(UserError, match="row 1: the model takes paths, PIL images or uint8 arrays, not int"):
        predictor.predict([3])
    with pytest.raises(UserError, match="row 1 is 9 x 9 pixels"):
        predictor.predict(np.zeros((1, 9, 9), np.uint8))


def test_the_package_offers_the_predictor() -> None:
    assert trainjob.Predictor is Predictor
    with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
        _ = trainjob.Trainer
