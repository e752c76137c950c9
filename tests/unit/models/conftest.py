from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from trainjob.api import Cleaning, Model
from trainjob.data import Examples
from trainjob.kinds.inputs.image import ImagePreprocessor
from trainjob.kinds.inputs.text import TextPreprocessor, train_wordpiece

TEXTS = ["the cat sat on the mat", "dogs bark at night", "a cat", "one dog and another dog went out for a walk"] * 5


@pytest.fixture
def text_preprocessor() -> TextPreprocessor:
    tokenizer, config = train_wordpiece(TEXTS, 200, 16)
    return TextPreprocessor(["bird", "cat", "dog"], [10, 30, 60], ["text"], Cleaning(), 16, 7.0, tokenizer, config)


@pytest.fixture
def text_inputs(text_preprocessor: TextPreprocessor) -> dict[str, torch.Tensor]:
    table = pa.table({"values": text_preprocessor.transform(pa.table({"text": TEXTS[:4]})), "label": np.zeros(4, int)})
    arrays = text_preprocessor.inputs(Examples.from_table(table))
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


@pytest.fixture
def image_preprocessor() -> Callable[..., ImagePreprocessor]:
    def make(height: int, width: int, channels: int) -> ImagePreprocessor:
        classes = ["bird", "cat", "dog"]
        return ImagePreprocessor(
            classes, [10, 30, 60], height, width, channels, [0.5] * channels, [0.2] * channels, False
        )

    return make


@pytest.fixture
def text_model() -> Callable[..., Model]:
    def make(**fields: Any) -> Model:
        source = {} if "pretrained" in fields else {"encoder": {"layers": 2, "hiddenSize": 32, "heads": 2}}
        return Model.model_validate({"textClassifier": {"maxLength": 16, **source, **fields}})

    return make
