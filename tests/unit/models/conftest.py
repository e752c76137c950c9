from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import torch

from preprocessors import image_classifier, text_classifier
from trainjob.api import Cleaning, Model
from trainjob.data import Examples, Preprocessor
from trainjob.data.read.rows import row_number
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.text import TextInput, train_wordpiece

TEXTS = ["the cat sat on the mat", "dogs bark at night", "a cat", "one dog and another dog went out for a walk"] * 5


@pytest.fixture
def text_preprocessor() -> Preprocessor:
    tokenizer, config = train_wordpiece(TEXTS, 200, 16)
    texts = TextInput(["text"], 16, 7.0, tokenizer, config, Cleaning())
    return text_classifier(texts, ["bird", "cat", "dog"], [10, 30, 60])


@pytest.fixture
def text_inputs(text_preprocessor: Preprocessor) -> dict[str, torch.Tensor]:
    values = text_preprocessor.input.transform(pa.table({"text": TEXTS[:4]}), row_number)
    arrays = text_preprocessor.input.batch(Examples.from_table(pa.table({"values": values})))
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


@pytest.fixture
def image_preprocessor() -> Callable[..., Preprocessor]:
    def make(height: int, width: int, channels: int) -> Preprocessor:
        images = ImageInput(height, width, channels, [0.5] * channels, [0.2] * channels, False)
        return image_classifier(images, ["bird", "cat", "dog"], [10, 30, 60])

    return make


@pytest.fixture
def text_model() -> Callable[..., Model]:
    def make(**fields: Any) -> Model:
        source = {} if "pretrained" in fields else {"encoder": {"layers": 2, "hiddenSize": 32, "heads": 2}}
        return Model.model_validate({"textClassifier": {"maxLength": 16, **source, **fields}})

    return make
