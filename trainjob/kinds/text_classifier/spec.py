"""`spec.model.textClassifier`."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainjob.kinds.classifier import METRICS, SCORES, Classifier
from trainjob.kinds.facts import TABLES, Columns, Facts
from trainjob.kinds.usage import Library, Usage, usage_of_predictor
from trainjob.schema.base import StrictModel
from trainjob.schema.fields import Dropout, PositiveInt, Pretrained


class Encoder(StrictModel):
    """A transformer encoder trained from scratch, with its own WordPiece tokenizer."""

    layers: PositiveInt = 2
    """Transformer layers."""
    hidden_size: PositiveInt = 128
    """Width of the encoder; a multiple of `heads`."""
    heads: PositiveInt = 4
    """Attention heads of each layer."""
    vocabulary_size: Annotated[int, Field(ge=100, le=1_000_000)] = 8192
    """Maximum vocabulary size of the WordPiece tokenizer, learned from the training texts."""

    @model_validator(mode="after")
    def _heads_divide_hidden_size(self) -> Self:
        if self.hidden_size % self.heads:
            raise PydanticCustomError(
                "heads",
                "hiddenSize must be a multiple of heads ({hidden} % {heads} = {rest})",
                {"hidden": self.hidden_size, "heads": self.heads, "rest": self.hidden_size % self.heads},
            )
        return self


class TextClassifier(Classifier):
    """A transformer encoder with dropout and a linear head: one label for each text."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "encoder")
    facts: ClassVar[Facts] = Facts(
        field="textClassifier",
        noun="classifier of texts",
        hub_task="text-classification",
        scores=SCORES,
        needs_dataset=True,
        formats=TABLES,
        columns=Columns(
            allowed=("text", "label", "cleaning"),
            required={
                ("text",): "is required by model.textClassifier: the columns that hold the text",
                ("label",): "is required by model.textClassifier: the column that holds the label",
            },
        ),
        metrics=METRICS,
        abilities=frozenset({"tuning", "distillation", "sharding", "compression", "pruning"}),
        usual_baselines=("mostFrequent", "tfidf"),
        other_baselines=("languageModel",),
        not_tuned=("maxLength", "encoder.vocabularySize", "freezeEncoder"),
        earlier_names=("text",),
    )

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head and, in an encoder from scratch, a value of the
    token embeddings."""
    pretrained: Pretrained | None = None
    """A transformers encoder, or a decoder that classifies by a text's last token: a name on the Hugging Face hub or a
    folder, also on s3:// or gs://. A decoder's tokenizer without a padding token pads with its eos_token."""
    encoder: Encoder | None = None
    """A small encoder trained from scratch."""
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128
    """Maximum tokens of a text; longer texts are truncated."""
    freeze_encoder: bool = False
    """Train only the head and freeze the encoder."""

    @model_validator(mode="after")
    def _freeze_needs_pretrained(self) -> Self:
        if self.freeze_encoder and self.encoder is not None:
            raise PydanticCustomError(
                "freeze", "freezeEncoder needs a pretrained encoder: all weights of a new one must be trained"
            )
        return self

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return "Text classifier, encoder trained from scratch"
        return f"Text classifier on {self.pretrained}"

    @property
    def library(self) -> Library:
        code = 'from transformers import pipeline\n\nclassify = pipeline("text-classification", model="FOLDER")'
        return Library("transformers", code, joins_columns=True)

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, '--text "…"', '["a text", "another"]', "new.csv")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
