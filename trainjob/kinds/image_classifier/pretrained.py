"""Image networks of transformers, with the weights that they were trained with before."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModelForImageClassification

from trainjob import api
from trainjob.errors import UserError
from trainjob.kinds.image_classifier.network import Normalization
from trainjob.kinds.inputs.image import ImageInput
from trainjob.models.pretrained import PretrainedClassifier, load_pretrained, load_saved
from trainjob.models.pretrained_layers import freeze_unused, head_of, set_dropout


class PretrainedImageClassifier(PretrainedClassifier):
    """A network of transformers with a classification head, on images that it first has to `normalize`."""

    def __init__(self, network: PreTrainedModel, normalize: Normalization, freeze_encoder: bool = False) -> None:
        super().__init__(network, freeze_encoder)
        self.normalize = normalize

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Pixels, uint8 [n, 3, height, width], to logits float32 [n, C]."""
        return self.network(pixel_values=self.normalize(pixel_values)).logits.float()


def build(spec: api.ImageNetwork, images: ImageInput, head: Mapping[str, Any]) -> PretrainedImageClassifier:
    """A pretrained network with a new head, which has the settings `head` of config.json. Raises UserError where the
    network is missing or does not fit."""
    name = spec.pretrained
    assert name is not None
    field = f"{spec.path}.pretrained"
    network, report = load_pretrained(
        AutoModelForImageClassification,
        name,
        field,
        "image classifier",
        ignore_mismatched_sizes=True,
        **head,
    )
    _check_weights(network, report, name, field)
    normalize = Normalization(images, spec.augmentation)
    classifier = PretrainedImageClassifier(network, normalize, spec.freeze_encoder)
    _try_out(classifier, images, name, field)
    _set_dropout(head_of(network), spec.dropout)
    return classifier


def load(folder: Path, images: ImageInput) -> PretrainedImageClassifier:
    """The network that is saved in `folder`."""
    return PretrainedImageClassifier(load_saved(AutoModelForImageClassification, folder), Normalization(images))


def _check_weights(network: PreTrainedModel, report: dict[str, Any], name: str, field: str) -> None:
    """Raises UserError if weights of the encoder are missing or of another shape; the head is new."""
    head = head_of(network)
    if not head:
        raise UserError(
            f"{field}: the head of {name} ({network.config.model_type}) cannot be separated from the rest; use "
            "another model"
        )
    head_weights = {id(weight) for part in head for weight in part.parameters()}
    encoder = {key for key, weight in network.named_parameters() if id(weight) not in head_weights}
    if wrong := sorted(encoder & {key for key, *_ in report["mismatched_keys"]}):
        raise UserError(
            f"{field}: the weights of {name} do not have the shapes in its config.json: {_first_few(wrong)}"
        )
    if encoder and encoder <= set(report["missing_keys"]):
        raise UserError(f"{field}: the files of {name} hold none of its weights, such as {_first_few(sorted(encoder))}")


def _try_out(classifier: PretrainedImageClassifier, images: ImageInput, name: str, field: str) -> None:
    """Computes one image, and freezes the weights that are not used. Raises UserError if the network cannot take it."""
    shape = (1, images.channels, images.height, images.width)
    try:
        logits = classifier.eval()(torch.zeros(shape, dtype=torch.uint8))
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{field}: the image processor of {name} makes images of {shape[3]} x {shape[2]} pixels in {shape[1]} "
            f"channels, which its network does not take: {error}"
        ) from error
    classifier.train()
    freeze_unused(classifier, logits)


def _first_few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _set_dropout(head: list[nn.Module], probability: float) -> None:
    """Adds dropout before the last layers of a head that has none; it is not saved."""
    if set_dropout(head, probability):
        return
    for part in head:
        for module in part.modules():
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(partial(_drop, probability))


def _drop(probability: float, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (functional.dropout(inputs[0], probability, module.training), *inputs[1:])
