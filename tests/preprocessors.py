"""Preprocessors made by hand, and the parts of fitted ones with their types."""

from typing import TypeVar

import numpy as np

from trainjob.data import Examples, Preprocessor
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.next_token import NextToken
from trainjob.kinds.targets.one_class import OneClass

T = TypeVar("T")


def text_classifier(texts: TextInput, classes: list[str], counts: list[int]) -> Preprocessor:
    return Preprocessor("textClassifier", texts, OneClass(classes, counts))


def image_classifier(images: ImageInput, classes: list[str], counts: list[int]) -> Preprocessor:
    return Preprocessor("imageClassifier", images, OneClass(classes, counts))


def language_model(tokens: TokensInput) -> Preprocessor:
    return Preprocessor("causalLM", tokens, NextToken())


def input_of(preprocessor: Preprocessor, kind: type[T]) -> T:
    assert isinstance(preprocessor.input, kind)
    return preprocessor.input


def target_of(preprocessor: Preprocessor) -> OneClass:
    assert isinstance(preprocessor.target, OneClass)
    return preprocessor.target


def labels_of(examples: Examples) -> np.ndarray:
    assert examples.labels is not None
    return examples.labels


def have_equal_labels(some: Examples, others: Examples) -> bool:
    """Rows of a language model have none: their labels are the tokens that follow."""
    if some.labels is None or others.labels is None:
        return some.labels is others.labels
    return np.array_equal(some.labels, others.labels)


def labels_after(tokens: TokensInput, examples: Examples) -> list[list[int]]:
    """The next tokens that a language model learns of these rows."""
    return NextToken().labels(examples, tokens.batch(examples)).tolist()
