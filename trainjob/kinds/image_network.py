"""The common fields of all kinds that read images."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import Facts
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.expressions import given, value
from trainjob.schema.fields import Dropout, PositiveInt, Pretrained
from trainjob.schema.rules import FieldRule, RuledModel


class MLP(StrictModel):
    """A multi-layer perceptron on the flattened image."""

    hidden: Annotated[list[PositiveInt], Field(min_length=1, max_length=16)] = [256, 128]
    """Width of each hidden layer."""


class CNN(StrictModel):
    """Blocks of two 3x3 convolutions, batch normalization and pooling, then a hidden layer."""

    channels: Annotated[list[PositiveInt], Field(min_length=1, max_length=8)] = [32, 64]
    """Channels of each block; each block halves height and width."""
    hidden: PositiveInt = 128
    """Width of the hidden layer before the head."""


class ImageSize(StrictModel):
    """The size that every image is resized to."""

    height: Annotated[int, Field(ge=1, le=4096)]
    """Pixels."""
    width: Annotated[int, Field(ge=1, le=4096)]
    """Pixels."""


class Augmentation(StrictModel):
    """Random changes to each training image, different in every epoch."""

    crop: Annotated[float, Field(gt=0, le=1)] = 0.35
    """Smallest fraction of the image's area for a random crop, which is resized to the full size; its aspect ratio is
    3:4 to 4:3 of the image's. 1 for no crop."""
    flip: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Probability of a horizontal flip."""


class ImageNetwork(RuledModel, OneOf):
    """A network for images."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "mlp", "cnn")

    facts: ClassVar[Facts]

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head."""
    pretrained: Pretrained | None = None
    """A transformers image classifier, whose head is replaced: a name on the Hugging Face hub or a folder, also on
    s3:// or gs://."""
    freeze_encoder: bool = False
    """Train only the head and freeze the rest of a pretrained network."""
    mlp: MLP | None = None
    """A multi-layer perceptron."""
    cnn: CNN | None = None
    """A convolutional network."""
    size: ImageSize | None = None
    """The size that every image is resized to; by default, all images must have the same size and keep it. A pretrained
    network's image processor determines the size itself."""
    augmentation: Augmentation | None = None
    """Random crops and flips of training images; `{}` for the default ones. Off by default."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        return (
            FieldRule(
                "freezeEncoder",
                "needs a pretrained network: all weights of a new one must be trained",
                ~value("freezeEncoder") | given("pretrained"),
            ),
            FieldRule(
                "size",
                "is for mlp and cnn: a pretrained network's image processor determines the size",
                ~given("size") | ~given("pretrained"),
            ),
        )

    @property
    def path(self) -> str:
        """The path of this section in a TrainJob."""
        return f"spec.model.{self.facts.field}"

    @property
    def worker_modules(self) -> list[str]:
        """Modules of its network, which workers import before the driver has prepared the rows."""
        return [f"trainjob.kinds.image_classifier.{'network' if self.pretrained is None else 'pretrained'}"]
