"""`spec.model.imageClassifier`."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from trainjob.kinds.classifier import METRICS, SCORES_OF_LABELS, Classifier
from trainjob.kinds.facts import Columns, Facts
from trainjob.kinds.usage import Library, Usage, usage_of_predictor
from trainjob.schema.base import StrictModel, refuse_conflicts
from trainjob.schema.fields import PositiveInt, Pretrained


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


class ImageClassifier(Classifier):
    """An image network: one label for each grayscale or RGB image."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "mlp", "cnn")
    facts: ClassVar[Facts] = Facts(
        field="imageClassifier",
        noun="classifier of images",
        hub_task="image-classification",
        scores=SCORES_OF_LABELS,
        needs_dataset=True,
        formats=(),
        columns=Columns(allowed=("image", "label", "labels"), required={}),
        metrics=METRICS,
        abilities=frozenset({"tuning", "distillation", "compression"}),
        usual_baselines=("mostFrequent", "pixels"),
        not_tuned=("size.height", "size.width", "freezeEncoder"),
        earlier_names=("image", "pretrained-image"),
    )

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

    @model_validator(mode="after")
    def _fits_the_network(self) -> Self:
        if self.freeze_encoder and self.pretrained is None:
            refuse_conflicts(
                [("freezeEncoder", "needs a pretrained network: all weights of a new one must be trained")]
            )
        if self.size is not None and self.pretrained is not None:
            refuse_conflicts(
                [("size", "is for mlp and cnn: a pretrained network's image processor determines the size")]
            )
        return self

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return f"Image classifier, {self.chosen.upper()}"
        return f"Image classifier on {self.pretrained}"

    @property
    def library(self) -> Library | None:
        if self.pretrained is None:
            return None
        return Library(
            "transformers",
            "from transformers import AutoImageProcessor, AutoModelForImageClassification\n\n"
            'processor = AutoImageProcessor.from_pretrained("FOLDER", backend="pil")\n'
            'model = AutoModelForImageClassification.from_pretrained("FOLDER")',
        )

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, "--image image.png", '["image.png"]', "images/")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
