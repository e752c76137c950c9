"""Models behind real HTTP servers, without Ray."""

from collections.abc import Generator
from pathlib import Path

import pytest

from asking import Server
from http_servers import served
from predictor_runs import make_run
from tiny_sets import write_digits, write_texts
from trainjob.predictor import Predictor


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    train = write_texts(folder) / "train.csv"
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 400}
    return make_run(
        folder / "run",
        {
            "model": {"textClassifier": {"encoder": encoder, "maxLength": 32}},
            "dataset": {"train": {"uri": str(train)}, "text": ["title", "body"], "label": "label"},
        },
    )


@pytest.fixture(scope="module")
def image_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder)
    model = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 8}}}
    return make_run(folder / "run", {"model": model, "dataset": {"train": {"uri": str(folder / "train")}}})


@pytest.fixture(scope="module")
def texts(text_run: Path) -> Generator[Server]:
    with served(Predictor.load(text_run), "tags") as server:
        yield server


@pytest.fixture(scope="module")
def images(image_run: Path) -> Generator[Server]:
    with served(Predictor.load(image_run), "digits") as server:
        yield server
