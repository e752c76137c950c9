"""Networks that answer an image: a multi-layer perceptron and a small convolutional network."""

import json
from collections import OrderedDict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, TypeAdapter
from torch import Tensor, nn

from trainjob import api
from trainjob.api import StrictModel
from trainjob.errors import UserError
from trainjob.kinds.image_classifier.augmentation import augment
from trainjob.kinds.inputs.image import ImageInput
from trainjob.models.classifier import TrainableClassifier, problem_type
from trainjob.models.config_format import SavedByConfig

MAX_MAP_SIDE = 8
"""Feature maps with more cells in height or width are averaged to this many before the hidden layer."""


class ImageConfig(StrictModel):
    """The content of a network's config.json, from which the network can be built again. `model_type` distinguishes its
    format from those of transformers."""

    channels: int
    """1 for gray, 3 for RGB."""
    height: int
    """Pixels."""
    width: int
    """Pixels."""

    @classmethod
    def of(cls, images: ImageInput, **others: Any) -> Self:
        return cls(channels=images.channels, height=images.height, width=images.width, **others)


class ClassifierConfig(ImageConfig):
    """The config of an image classifier."""

    model_type: Annotated[Literal["trainjob-image-classifier"], Field(alias="model_type")] = "trainjob-image-classifier"
    model: api.ImageClassifier
    """The TrainJob's `spec.model.imageClassifier`."""
    classes: list[str]
    """Class names in the order of the logits."""

    @property
    def outputs(self) -> int:
        return len(self.classes)

    @property
    def problem_type(self) -> str:
        return problem_type(self.model.loss)


class RegressorConfig(ImageConfig):
    """The config of an image regressor."""

    model_type: Annotated[Literal["trainjob-image-regressor"], Field(alias="model_type")] = "trainjob-image-regressor"
    model: api.ImageRegressor
    """The TrainJob's `spec.model.imageRegressor`."""
    outputs: int = 1
    """Numbers of each image; earlier versions did not write it."""
    problem_type: ClassVar[str] = "regression"


AnyConfig = ClassifierConfig | RegressorConfig
_CONFIG: TypeAdapter[AnyConfig] = TypeAdapter(Annotated[AnyConfig, Field(discriminator="model_type")])


class Normalization(nn.Module):
    """Brings pixels of 0 to 255 to what networks take; not saved with the weights but with the images."""

    divisor: Tensor
    subtrahend: Tensor

    def __init__(self, images: ImageInput, augmentation: api.Augmentation | None = None) -> None:
        super().__init__()
        self._augmentation = augmentation
        for name, values in zip(("divisor", "subtrahend"), images.normalization, strict=True):
            self.register_buffer(name, torch.tensor(values), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """From uint8 [n, C, H, W] to float32; augmented in training."""
        images = pixels.float() / self.divisor - self.subtrahend
        if self.training and self._augmentation is not None:
            return augment(images, self._augmentation)
        return images


class ImageModule(SavedByConfig[AnyConfig], TrainableClassifier[nn.Sequential]):
    """The network that `config` describes, on images that it first has to `normalize`."""

    def __init__(self, config: AnyConfig, normalize: Normalization) -> None:
        super().__init__(_mlp(config) if config.model.mlp is not None else _cnn(config))
        self.config, self.normalize = config, normalize

    @property
    def problem_type(self) -> str:
        return self.config.problem_type

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Pixels, uint8 [n, channels, height, width], to logits float32 [n, C]."""
        return self.network(self.normalize(pixel_values)).float()


def build(config: AnyConfig, images: ImageInput) -> ImageModule:
    """A new network. Raises UserError if the images are too small for it."""
    return ImageModule(config, Normalization(images, config.model.augmentation))


def is_saved_in(folder: Path) -> bool:
    """Whether the folder holds a network of this module."""
    return json.loads((folder / "config.json").read_bytes())["model_type"] in (
        "trainjob-image-classifier",
        "trainjob-image-regressor",
    )


def load(folder: Path, images: ImageInput) -> ImageModule:
    """The network that is saved in `folder`."""
    config = _CONFIG.validate_json((folder / "config.json").read_bytes())
    module = ImageModule(config, Normalization(images))
    module.load_weights(folder)
    return module


def _mlp(config: AnyConfig) -> nn.Sequential:
    assert config.model.mlp is not None
    layers: list[nn.Module] = [nn.Flatten()]
    width = config.channels * config.height * config.width
    for hidden in config.model.mlp.hidden:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return _with_head(layers, width, config)


def _cnn(config: AnyConfig) -> nn.Sequential:
    """VGG's blocks (Simonyan and Zisserman, 2014) with batch normalization, and one hidden layer."""
    cnn = config.model.cnn
    assert cnn is not None
    height, width = config.height >> len(cnn.channels), config.width >> len(cnn.channels)
    if not (height and width):
        smallest = 2 ** len(cnn.channels)
        raise UserError(
            f"{config.model.path}.cnn.channels: {len(cnn.channels)} blocks each halve the image and need "
            f"{smallest} x {smallest} pixels or more, but the images have {config.width} x {config.height}; "
            "use fewer blocks"
        )
    layers: list[nn.Module] = []
    channels = config.channels
    for block in cnn.channels:
        layers += [*_convolution(channels, block), *_convolution(block, block), nn.MaxPool2d(2)]
        channels = block
    height, width = min(height, MAX_MAP_SIDE), min(width, MAX_MAP_SIDE)
    layers += [nn.AdaptiveAvgPool2d((height, width)), nn.Flatten()]
    layers += [nn.Linear(channels * height * width, cnn.hidden), nn.ReLU()]
    return _with_head(layers, cnn.hidden, config)


def _convolution(channels: int, filters: int) -> list[nn.Module]:
    """A 3x3 convolution, batch normalization (which makes a bias needless) and ReLU."""
    return [nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]


def _with_head(layers: list[nn.Module], width: int, config: AnyConfig) -> nn.Sequential:
    head = nn.Sequential(nn.Dropout(config.model.dropout), nn.Linear(width, config.outputs))
    return nn.Sequential(OrderedDict[str, nn.Module](body=nn.Sequential(*layers), head=head))
