"""`spec.baselines`: what the trained model is compared with."""

from typing import Annotated, Literal

from pydantic import Field

from trainjob.api.cluster import ResourceName
from trainjob.schema.base import StrictModel
from trainjob.schema.uris import ENDPOINT

LANGUAGE_MODEL_KEY = "OPENAI_API_KEY"
"""The environment variable with the key of a language model's server."""


class MostFrequent(StrictModel):
    """The most frequent class of the training part, whatever the row."""


class Tfidf(StrictModel):
    """Logistic regression on the TF-IDF weights of words and pairs of words."""


class Pixels(StrictModel):
    """Logistic regression on the pixels of the image, shrunk to at most 32 by 32."""


class LanguageModel(StrictModel):
    """A large language model that is told the classes, and shown examples of them or not."""

    endpoint: Annotated[str, Field(pattern=ENDPOINT)]
    """Address of a server with OpenAI's protocol, such as http://vllm:8000/v1."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name on that server."""
    secret_name: ResourceName | None = None
    """Secret with OPENAI_API_KEY; on a laptop it comes from the environment. Some servers need none."""
    descriptions: dict[str, str] = {}
    """What classes mean, by name, where the name does not say it."""
    shots: Annotated[int, Field(ge=0, le=50)] = 0
    """Examples of each class that it is shown, from the training part alone."""
    examples: Literal["random", "nearest"] = "random"
    """Which: the same for all texts, drawn by training.seed, or for each text those nearest to it by TF-IDF."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    """Requests under way at once."""
    max_requests: Annotated[int, Field(ge=1)] = 1000
    """Most requests, repeated ones included; rows beyond them are not compared."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Most tokens, asked and answered together."""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """Most money, in the currency of the prices."""
    input_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million tokens asked."""
    output_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million tokens answered."""


class Baselines(StrictModel):
    """Classifiers that cost little, scored on the same rows as the trained model; those that are named, none for
    `{}`."""

    most_frequent: MostFrequent | None = None
    """The most frequent class of the training part, whatever the row."""
    tfidf: Tfidf | None = None
    """Logistic regression on the TF-IDF weights of words and pairs of words; for text classifiers."""
    pixels: Pixels | None = None
    """Logistic regression on the pixels of the image, shrunk to at most 32 by 32; for image classifiers."""

    language_model: LanguageModel | None = None
    """A large language model that is told the classes, and shown examples of them or not; for text classifiers."""

    @property
    def named(self) -> list[str]:
        """The names in YAML of those that are wanted."""
        return [info.alias or name for name, info in type(self).model_fields.items() if getattr(self, name) is not None]
