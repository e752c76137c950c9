"""`spec.model`: what is trained."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainjob.api.base import OneOf, StrictModel, refuse_conflicts
from trainjob.api.uris import MODEL

PositiveInt = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(gt=0)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
LAYER_NAME = r"^[A-Za-z0-9_.]+$"
LayerName = Annotated[str, Field(min_length=1, max_length=253, pattern=LAYER_NAME)]


class Loss(OneOf):
    """The loss, averaged over samples."""

    class CrossEntropy(StrictModel):
        """Softmax cross-entropy over the classes."""

    class BinaryCrossEntropy(StrictModel):
        """One sigmoid a class against the one-hot label."""

    cross_entropy: CrossEntropy | None = None
    """Softmax cross-entropy over the classes."""
    binary_cross_entropy: BinaryCrossEntropy | None = None
    """One sigmoid a class against the one-hot label."""


class ClassWeights(OneOf):
    """How much each class counts in the loss."""

    class Balanced(StrictModel):
        """Rows / (classes * rows of the class), counted on the training part."""

    balanced: Balanced | None = None
    """Weights inverse to the classes' frequency in the training part."""
    values: dict[str, Weight] | None = None
    """A weight for each class by name; every class must be named."""


class Encoder(StrictModel):
    """A transformer encoder trained from scratch, with a WordPiece tokenizer of its own."""

    layers: PositiveInt = 2
    """Transformer layers."""
    hidden_size: PositiveInt = 128
    """Width of the encoder; a multiple of `heads`."""
    heads: PositiveInt = 4
    """Attention heads of each layer."""
    vocabulary_size: Annotated[int, Field(ge=100, le=1_000_000)] = 8192
    """Most tokens that the WordPiece tokenizer learns from the training texts."""

    @model_validator(mode="after")
    def _heads_divide_hidden_size(self) -> Self:
        if self.hidden_size % self.heads:
            raise PydanticCustomError(
                "heads",
                "hiddenSize must be a multiple of heads ({hidden} % {heads} = {rest})",
                {"hidden": self.hidden_size, "heads": self.heads, "rest": self.hidden_size % self.heads},
            )
        return self


Pretrained = Annotated[str, Field(min_length=1, pattern=MODEL)]


class Classifier(OneOf):
    """What text and image classifiers share."""

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head."""
    loss: Loss = Loss(cross_entropy=Loss.CrossEntropy())
    """What training minimizes."""
    class_weights: ClassWeights | None = None
    """How much each class counts in the loss, also in the losses that are reported; every row counts the same by
    default."""


class TextClassifier(Classifier):
    """A transformer encoder with dropout and a linear head: one label for each text."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "encoder")

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head and, in an encoder from scratch, a value of the
    token embeddings."""
    pretrained: Pretrained | None = None
    """A transformers encoder, or a decoder, which classifies by a text's last token: a name on the Hugging Face hub or
    a folder, also on s3:// or gs://. A decoder's tokenizer without a padding token pads with its eos_token."""
    encoder: Encoder | None = None
    """A small encoder trained from scratch."""
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128
    """Longest text in tokens; what is beyond it is cut off."""
    freeze_encoder: bool = False
    """Train the head alone and leave the encoder as it is."""

    @model_validator(mode="after")
    def _freeze_needs_pretrained(self) -> Self:
        if self.freeze_encoder and self.encoder is not None:
            raise PydanticCustomError(
                "freeze", "freezeEncoder needs a pretrained encoder: one from scratch must be trained"
            )
        return self


class MLP(StrictModel):
    """A multi-layer perceptron on the flattened image."""

    hidden: Annotated[list[PositiveInt], Field(min_length=1, max_length=16)] = [256, 128]
    """Width of each hidden layer."""


class CNN(StrictModel):
    """Blocks of two 3x3 convolutions, batch normalization and pooling, then a hidden layer."""

    channels: Annotated[list[PositiveInt], Field(min_length=1, max_length=8)] = [32, 64]
    """Channels of each block; every block halves height and width."""
    hidden: PositiveInt = 128
    """Width of the hidden layer before the head."""


class ImageSize(StrictModel):
    """What every image is resized to."""

    height: Annotated[int, Field(ge=1, le=4096)]
    """Pixels."""
    width: Annotated[int, Field(ge=1, le=4096)]
    """Pixels."""


class Augmentation(StrictModel):
    """Random changes of each training image, others in every epoch."""

    crop: Annotated[float, Field(gt=0, le=1)] = 0.35
    """Smallest share of the image that is cut out, in a random place and with sides of 3:4 to 4:3 of the image's, and
    resized to the whole; 1 for no cut."""
    flip: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Probability of swapping left and right."""


class ImageClassifier(Classifier):
    """A network for images: one label for each grey or RGB image."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "mlp", "cnn")

    pretrained: Pretrained | None = None
    """A transformers image classifier, which gets a new head: a name on the Hugging Face hub or a folder, also on
    s3:// or gs://."""
    freeze_encoder: bool = False
    """Train the head alone and leave the rest of a pretrained network as it is."""
    mlp: MLP | None = None
    """A multi-layer perceptron."""
    cnn: CNN | None = None
    """A convolutional network."""
    size: ImageSize | None = None
    """What every image is resized to; by default all images must have one size, and keep it. For a pretrained network
    its image processor says what they become."""
    augmentation: Augmentation | None = None
    """Random cuts and mirror images to train on, `{}` for the usual ones; by default images stay as they are."""

    @model_validator(mode="after")
    def _fits_the_network(self) -> Self:
        if self.freeze_encoder and self.pretrained is None:
            refuse_conflicts([("freezeEncoder", "needs a pretrained network: one from scratch must be trained")])
        if self.size is not None and self.pretrained is not None:
            refuse_conflicts(
                [("size", "is for mlp and cnn: a pretrained network's image processor says what images become")]
            )
        return self


class Decoder(StrictModel):
    """A transformer decoder of Llama's shape trained from scratch, with a byte-level BPE tokenizer of its own."""

    layers: PositiveInt = 4
    """Transformer layers."""
    hidden_size: PositiveInt = 256
    """Width of the decoder; a multiple of 2 * `heads`."""
    heads: PositiveInt = 4
    """Attention heads of each layer."""
    dropout: Dropout = 0.0
    """Probability of dropping an attention weight."""
    vocabulary_size: Annotated[int, Field(ge=300, le=1_000_000)] = 8192
    """Most tokens that the tokenizer learns from the training texts; 256 of them are single bytes."""

    @model_validator(mode="after")
    def _heads_divide_hidden_size(self) -> Self:
        if rest := self.hidden_size % (2 * self.heads):
            raise PydanticCustomError(
                "heads",
                "hiddenSize must be a multiple of 2 * heads ({hidden} % {heads} = {rest})",
                {"hidden": self.hidden_size, "heads": 2 * self.heads, "rest": rest},
            )
        return self


class LoRA(StrictModel):
    """Low-rank matrices that are trained beside linear layers of a pretrained network, which stays as it is."""

    rank: Annotated[int, Field(ge=1, le=65_536)] = 16
    """Rows of the one matrix, columns of the other."""
    alpha: Annotated[float | None, Field(gt=0)] = None
    """What the matrices give is multiplied by alpha / `rank`; by default, twice the rank."""
    dropout: Dropout = 0.0
    """Probability of dropping a value that the matrices are given."""
    target_modules: Annotated[list[LayerName], Field(min_length=1, max_length=100)] | None = None
    """The linear layers' names, such as `q_proj`, or ends of their paths; by default all but the one that gives the
    logits."""


class CausalLM(OneOf):
    """A language model that continues texts."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "decoder")

    pretrained: Pretrained | None = None
    """A transformers decoder: a name on the Hugging Face hub or a folder, also on s3:// or gs://."""
    decoder: Decoder | None = None
    """A small decoder trained from scratch."""
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 512
    """Tokens of a training row: shorter texts lie in one side by side, longer ones are cut into several."""
    lora: LoRA | None = None
    """Train an adapter, and not the pretrained decoder itself; `{}` for the usual one."""

    @model_validator(mode="after")
    def _lora_needs_pretrained(self) -> Self:
        if self.lora is not None and self.decoder is not None:
            refuse_conflicts([("lora", "needs a pretrained decoder: one from scratch must be trained")])
        return self


class Function(StrictModel):
    """A Ray Train loop of your own, run unmodified on every worker."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """`module:function`; the module lies beside the YAML or is installed."""
    config: dict[str, Any] = {}
    """Passed to the function as its only argument."""


class Model(OneOf):
    """What is trained: exactly one of these."""

    text_classifier: TextClassifier | None = None
    """One label for each text."""
    image_classifier: ImageClassifier | None = None
    """One label for each image."""
    causal_lm: Annotated[CausalLM | None, Field(alias="causalLM")] = None
    """A language model that continues texts."""
    function: Function | None = None
    """A Ray Train loop of your own."""

    @property
    def classifier(self) -> Classifier | None:
        return self.text_classifier or self.image_classifier

    @property
    def pretrained(self) -> str | None:
        """The name, folder or URI of the pretrained network that training begins with, where there is one."""
        return getattr(getattr(self, self.chosen), "pretrained", None)

    @property
    def max_length(self) -> int | None:
        """Most tokens of a row; None where rows have none."""
        return getattr(getattr(self, self.chosen), "max_length", None)
