"""The common fields of text classifiers, text regressors and token classifiers."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import Facts
from trainjob.schema.base import OneOf
from trainjob.schema.expressions import given, setting, value
from trainjob.schema.fields import Dropout, PositiveInt, Pretrained
from trainjob.schema.rules import FieldRule, RuledModel, remainder

NOT_TUNED = ("maxLength", "freezeEncoder", "encoder.vocabularySize", "encoder.hiddenSize", "encoder.heads")
"""Fields that a search leaves alone: the data is prepared once for all trials, and heads must divide hiddenSize."""


class Encoder(RuledModel):
    """A transformer encoder trained from scratch, with its own WordPiece tokenizer."""

    layers: PositiveInt = 2
    """Transformer layers."""
    hidden_size: PositiveInt = 128
    """Width of the encoder; a multiple of `heads`."""
    heads: PositiveInt = 4
    """Attention heads of each layer."""
    vocabulary_size: Annotated[int, Field(ge=100, le=1_000_000)] = 8192
    """Maximum vocabulary size of the WordPiece tokenizer, learned from the training texts."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        divides = setting(cls, "hiddenSize").is_multiple_of(setting(cls, "heads"))
        message = "must be a multiple of heads"
        return (FieldRule("hiddenSize", message, divides, lambda own: remainder(own.hidden_size, own.heads)),)


class PooledEncoder(OneOf):
    """A transformer encoder; the mean of its last hidden states represents a text."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "encoder")

    pretrained: Pretrained | None = None
    """A transformers encoder: a name on the Hugging Face hub or a folder, also on s3:// or gs://."""
    encoder: Encoder | None = None
    """A small encoder trained from scratch."""
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128
    """Maximum tokens of a text; longer texts are truncated."""


class TextNetwork(RuledModel, OneOf):
    """A transformer encoder with dropout and a linear head."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "encoder")

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head and, in an encoder from scratch, a value of the
    token embeddings."""
    pretrained: Pretrained | None = None
    """A transformers encoder, or a decoder that answers by a text's last token: a name on the Hugging Face hub or a
    folder, also on s3:// or gs://. A decoder's tokenizer without a padding token pads with its eos_token."""
    encoder: Encoder | None = None
    """A small encoder trained from scratch."""
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128
    """Maximum tokens of a text; longer texts are truncated."""
    freeze_encoder: bool = False
    """Train only the head and freeze the encoder."""

    facts: ClassVar[Facts]

    @property
    def path(self) -> str:
        """The path of this section in a TrainJob."""
        return f"spec.model.{self.facts.field}"

    @property
    def worker_modules(self) -> list[str]:
        """Modules of its network, which workers import before the driver has prepared the rows."""
        return ["trainjob.kinds.text_classifier.network"]

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        message = "needs a pretrained encoder: all weights of a new one must be trained"
        return (FieldRule("freezeEncoder", message, ~value("freezeEncoder") | ~given("encoder")),)
