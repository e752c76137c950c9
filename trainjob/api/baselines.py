"""`spec.baselines`: cheap models to compare the trained one with."""

from typing import Annotated, Literal

from pydantic import Field

from trainjob.api.cluster import ResourceName
from trainjob.schema.base import StrictModel
from trainjob.schema.uris import ENDPOINT

LANGUAGE_MODEL_KEY = "OPENAI_API_KEY"
"""The environment variable with the API key of a language model's server."""


class MostFrequent(StrictModel):
    """Always predicts the most frequent class of the training set."""


class Mean(StrictModel):
    """Always predicts the mean label of the training set."""


class Tfidf(StrictModel):
    """Logistic regression, or ridge regression for numbers, on TF-IDF weights of words and word pairs."""


class Pixels(StrictModel):
    """Logistic regression, or ridge regression for numbers, on the pixels of the image, shrunk to at most 32 by 32."""


class Linear(StrictModel):
    """A linear model on the columns of a table: logistic regression for classes, ridge regression for numbers."""


class LightGBM(StrictModel):
    """Gradient boosted trees by LightGBM on the columns of a table. Of three settings, the one with the lowest
    validation loss is taken; the validation rows also determine the number of trees."""


class KnownStrings(StrictModel):
    """Looks up the strings of the training rows' spans as whole words, each with its most frequent type."""


class LanguageModel(StrictModel):
    """A large language model prompted with the classes and, optionally, examples."""

    endpoint: Annotated[str, Field(pattern=ENDPOINT)]
    """URL of an OpenAI-compatible server, such as http://vllm:8000/v1."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name on that server."""
    secret_name: ResourceName | None = None
    """Secret with OPENAI_API_KEY; on a laptop, the environment provides it. Some servers need none."""
    descriptions: dict[str, str] = {}
    """Descriptions of classes, by class name, for names that are not self-explanatory."""
    shots: Annotated[int, Field(ge=0, le=50)] = 0
    """Examples of each class in the prompt, from the training set only."""
    examples: Literal["random", "nearest"] = "random"
    """random: the same examples for all texts, drawn with training.seed. nearest: for each text, the nearest ones by
    TF-IDF."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    """Maximum concurrent requests."""
    max_requests: Annotated[int, Field(ge=1)] = 1000
    """Maximum number of requests, including retries; the remaining rows are not compared."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of input and output tokens together."""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """Maximum cost, in the currency of the prices."""
    input_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million input tokens."""
    output_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million output tokens."""


class Baselines(StrictModel):
    """Cheap models that are scored on the same rows as the trained model: only the named ones, none for `{}`."""

    most_frequent: MostFrequent | None = None
    """Always predicts the most frequent class of the training set."""
    mean: Mean | None = None
    """Always predicts the mean label of the training set; for regressors."""
    tfidf: Tfidf | None = None
    """Logistic regression, or ridge regression for numbers, on TF-IDF weights of words and word pairs; for texts."""
    pixels: Pixels | None = None
    """Logistic regression, or ridge regression for numbers, on the pixels of the image, shrunk to at most 32 by 32; for
    images."""
    linear: Linear | None = None
    """A linear model on the columns of a table; for models of tables."""
    lightgbm: LightGBM | None = None
    """Gradient boosted trees by LightGBM on the columns of a table; for models of tables."""

    known_strings: KnownStrings | None = None
    """Looks up the strings of the training rows' spans as whole words, each with its most frequent type; for token
    classifiers."""
    language_model: LanguageModel | None = None
    """A large language model prompted with the classes and, optionally, examples; for text classifiers."""

    @property
    def named(self) -> list[str]:
        """The YAML names of the selected baselines."""
        return [info.alias or name for name, info in type(self).model_fields.items() if getattr(self, name) is not None]
