"""The responses of /predict, over HTTP."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from asking import Answer, Server
from http_servers import running, served
from predictor_runs import make_run
from tiny_image_models import save_resnet
from trainjob.predictor import Predictor
from trainjob.serving.app import build_app

TEXTS = ["red1 red2 word3", "blue5", "", "word1 " * 500, "Ünïcode \x00 \U0001f600 \u202e end"]


def expected(answer: Answer, probabilities: np.ndarray, classes: list[str]) -> None:
    """The answer is what the Predictor gives, best first."""
    assert answer.status == 200, answer.text
    found = answer.json["predictions"]
    assert len(found) == len(probabilities)
    for each, row in zip(found, probabilities, strict=True):
        assert sorted(each["probabilities"]) == classes
        assert list(each["probabilities"].values()) == sorted(each["probabilities"].values(), reverse=True)
        assert [each["probabilities"][name] for name in classes] == pytest.approx(row.tolist(), abs=1e-4)
        assert each["prediction"] == classes[int(row.argmax())] == next(iter(each["probabilities"]))
        assert each["probability"] == each["probabilities"][each["prediction"]]


def test_texts(texts: Server, text_run: Path):
    predictor = Predictor.load(text_run)
    expected(texts.predict({"texts": TEXTS}), predictor.predict_proba(TEXTS), predictor.classes)


def test_rows_of_a_table(texts: Server, text_run: Path):
    """Rows by column: an unknown column is ignored, null means no text, and numbers are as in JSON."""
    rows = [
        {"title": "red1", "body": "red2 red3"},
        {"body": "blue1", "title": "blue2", "id": [1, 2]},
        {"title": None, "body": "word1"},
        {"title": 7, "body": 1.5},
        {"title": True, "body": ""},
    ]
    spelled = ["red1 red2 red3", "blue2 blue1", "word1", "7 1.5", "true"]
    predictor = Predictor.load(text_run)
    expected(texts.predict({"rows": rows}), predictor.predict_proba(spelled), predictor.classes)


def test_vectors_of_texts_by_an_embedder_of_triplets(tmp_path: Path):
    """A text alone is embedded, as a text or by its columns."""
    rows = [(f"one word{number}", f"word{number} two", f"word{number + 1} two") for number in range(20)]
    lines = "".join(f"{','.join(row)}\n" for row in rows)
    (tmp_path / "train.csv").write_text(f"anchor,positive,negative\n{lines}")
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
    dataset = {"text": ["anchor"], "textPair": ["positive"], "textNegative": ["negative"]}
    spec = {
        "model": {"textEmbedder": {"encoder": encoder, "maxLength": 8}},
        "dataset": {"train": {"uri": str(tmp_path / "train.csv")}, **dataset},
    }
    predictor = Predictor.load(make_run(tmp_path / "run", spec))
    texts = ["one word3", "", "word4 two"]
    vectors = np.array(predictor.predict(texts))
    assert vectors.shape == (3, 16)
    with served(predictor, "embedder") as server:
        for question in ({"texts": texts}, {"rows": [{"anchor": text} for text in texts]}):
            answer = server.predict(question)
            assert answer.status == 200, answer.text
            found = np.array([each["prediction"] for each in answer.json["predictions"]])
            np.testing.assert_allclose(found, vectors, atol=1e-5)


def png(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def test_images(images: Server, image_run: Path):
    pixels = [np.full((8, 8), value) for value in (0, 100, 255)]
    predictor = Predictor.load(image_run)
    probabilities = predictor.predict_proba(np.stack(pixels).astype(np.uint8))
    expected(images.predict({"images": [png(each) for each in pixels]}), probabilities, predictor.classes)


def test_images_of_any_size_for_a_pretrained_network(image_run: Path, tmp_path: Path):
    train = yaml.safe_load((image_run / "trainjob.yaml").read_text())["spec"]["dataset"]["train"]
    model = {"imageClassifier": {"pretrained": str(save_resnet(tmp_path / "resnet"))}}
    predictor = Predictor.load(make_run(tmp_path / "run", {"model": model, "dataset": {"train": train}}))
    pixels = [np.full((8, 8), 90), np.arange(20 * 31 * 3).reshape(20, 31, 3) % 256]
    rows = [Image.fromarray(each.astype(np.uint8)) for each in pixels]
    with served(predictor, "resnet") as server:
        found = server.predict({"images": [png(each) for each in pixels]})
        expected(found, predictor.predict_proba(rows), predictor.classes)
        refused = server.predict({"images": [png(np.zeros((2, 80)))]})
    assert refused.status == 422
    assert "no side may be more than 32 times as long as the other" in refused.text


def bomb() -> bytes:
    """A PNG of 20,000 x 20,000 pixels in 50 KB."""
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    return file.getvalue()


GOOD = png(np.full((8, 8), 3))
DIGITS = [
    ({"images": []}, "images: is empty: send at least one"),
    ({"images": [GOOD, "§"]}, "images[1]: is not base64"),
    ({"images": [GOOD, 7]}, "images[1]: must be an image file in base64"),
    ({"images": [GOOD, base64.b64encode(b"no image").decode()]}, "images[1]: the image is not a valid image file"),
    ({"images": [GOOD, base64.b64encode(base64.b64decode(GOOD)[:50]).decode()]}, "images[1]: the image is not a valid"),
    ({"images": [base64.b64encode(bomb()).decode()]}, "pixels are not supported"),
    ({"images": [png(np.zeros((9, 8)))]}, "images[0]: the image is 8 x 9 pixels"),
    ({"texts": ["a"]}, "texts: "),
    ({"images": [""]}, "images[0]: the image is not a valid image file"),
]


@pytest.mark.parametrize(("body", "said"), DIGITS, ids=range(len(DIGITS)))
def test_images_that_are_none_are_refused(images: Server, body: Any, said: str):
    answer = images.predict(body)
    assert (answer.status, said in answer.detail) == (422, True), answer.text
    assert images.predict({"images": [GOOD]}).status == 200


SURROGATE = b'{"texts": ["\\ud800"]}'
WRONG = [
    (b"", "the request: is empty"),
    (b"no JSON", "is not JSON"),
    (b'{"texts": ["a"]', "is not JSON"),
    (b"\xff\xfe", "JSON"),
    (b"null", "the request: "),
    (b'["a"]', "the request"),
    (b"{}", "send either texts or rows"),
    (b'{"texts": ["a"], "rows": []}', "rows: "),
    (b'{"texts": ["a"], "rows": [{"title": "a", "body": "b"}]}', "send either texts or rows"),
    (b'{"texts": []}', "texts: "),
    (b'{"texts": "a"}', "texts: "),
    (b'{"texts": ["a", 7]}', "texts[1]: "),
    (b'{"texts": ["a", null]}', "texts[1]: "),
    (b'{"texts": ["a"], "tex": []}', "tex: is not known; a request has texts or rows"),
    (SURROGATE, "texts[0]: "),
    (b'{"rows": [{"title": "a"}]}', "rows[0].body: is missing"),
    (b'{"rows": [{"title": "a", "body": ["b"]}]}', "rows[0].body: must be text, a number"),
    (b'{"rows": [{"title": "a", "body": NaN}]}', "rows[0].body: is not a JSON number"),
    (b'{"rows": [{"title": "a", "body": 1e999}]}', "rows[0].body: is not a JSON number"),
    (b'{"rows": [{"title": "a", "body": "\\udc00"}]}', "rows[0].body: "),
    (b'{"rows": ["a"]}', "rows[0]: "),
    (json.dumps({"texts": ["a"] * 1001}).encode(), "texts: "),
    (json.dumps({"texts": ["a"] * 10_000}).encode(), "texts: "),
    (json.dumps({"texts": ["b", "a" * 5_000_000]}).encode(), "texts[1]: has 5,000,000 characters"),
    (json.dumps({"rows": [{"title": "b", "body": "a" * 5_000_000}]}).encode(), "rows[0].body: has 5,000,000"),
    (b'{"images": ["aaaa"]}', "images: "),
]


@pytest.mark.parametrize(("body", "said"), WRONG, ids=range(len(WRONG)))
def test_what_makes_no_sense_is_refused_and_named(texts: Server, body: bytes, said: str):
    answer = texts.predict(body)
    assert (answer.status, said in answer.detail) == (422, True), answer.text[:1000]
    assert len(answer.text) < 2000
    assert texts.predict({"texts": ["a"]}).status == 200


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"texts": [' + b"9" * 10_000 + b"]}"], ids=["deep", "long"])
def test_json_beyond_what_the_parser_takes_is_refused(texts: Server, body: bytes):
    assert texts.predict(body).status == 400


def test_many_mistakes_are_not_all_named(texts: Server):
    detail = texts.predict({"texts": list(range(50))}).detail
    assert detail.startswith("texts[0]: must be text, not a number\ntexts[1]: ")
    assert detail.count("\n") == 10
    assert detail.endswith("and 40 more")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "nonsense"])
def test_another_content_type_is_refused(texts: Server, kind: str):
    answer = texts.predict({"texts": ["a"]}, Content_Type=kind)
    assert answer.status == 415
    assert kind in answer.detail


def test_json_may_say_its_charset(texts: Server):
    assert texts.predict({"texts": ["a"]}, Content_Type="application/json; charset=utf-8").status == 200


def test_other_paths_and_methods_are_refused(texts: Server):
    assert texts.get("/predict").status == 405
    assert texts.get("/nothing").status == 404


def test_as_many_rows_as_a_request_may_have(texts: Server):
    assert len(texts.predict({"texts": ["red1"] * 1000}).classes) == 1000


def test_batches_may_be_smaller(text_run: Path):
    with running(build_app(Predictor.load(text_run), "tags", batch_rows=2)) as server:
        assert len(server.predict({"texts": ["a"] * 5}).classes) == 5
        assert "trainjob_serving_batch_rows_count 3.0" in server.get("/metrics").text


def test_a_number_is_answered_in_its_own_unit(tmp_path: Path) -> None:
    rows = "\n".join(f"{'word ' * (number % 7)}end,{1000 + 10 * (number % 7)}" for number in range(40))
    (tmp_path / "rows.csv").write_text(f"text,points\n{rows}\n")
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 100}
    spec = {
        "model": {"textRegressor": {"encoder": encoder, "maxLength": 16}},
        "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "text": ["text"], "label": "points"},
    }
    predictor = Predictor.load(make_run(tmp_path / "run", spec))
    with served(predictor, "points") as server:
        found = server.predict({"texts": ["word end", "end"]})
        assert [each["prediction"] for each in found.json["predictions"]] == predictor.predict(["word end", "end"])
        assert set(found.json["predictions"][0]) == {"prediction"}
        assert server.get("/healthz").json == {"model": "points", "kind": "text"}
        assert "A regressor of texts, which predicts points." in server.get("/").text
