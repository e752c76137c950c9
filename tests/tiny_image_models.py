"""Tiny networks of transformers for images, with random weights, as transformers saves them."""

from pathlib import Path
from typing import Any

import torch
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.resnet.configuration_resnet import ResNetConfig
from transformers.models.resnet.modeling_resnet import ResNetForImageClassification
from transformers.models.vit.configuration_vit import ViTConfig
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil
from transformers.models.vit.modeling_vit import ViTForImageClassification

SIDE = 16
_VIT: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": SIDE,
    "patch_size": 8,
    "num_labels": 5,
}
_RESNET: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_sizes": [8, 8],
    "depths": [1, 1],
    "layer_type": "basic",
    "num_labels": 5,
}


def save_vit(folder: Path, **processor: Any) -> Path:
    """A transformer with a head for five classes. Images become squares of 16 pixels, unless `processor` says else."""
    torch.manual_seed(0)
    ViTForImageClassification(ViTConfig(**_VIT)).save_pretrained(folder)
    options: dict[str, Any] = {"size": {"height": SIDE, "width": SIDE}} | processor
    ViTImageProcessorPil(**options).save_pretrained(folder)
    return folder


def save_resnet(folder: Path) -> Path:
    """A convolutional network with batch normalization. Of an image, resized to 18 pixels on its shorter side, the 16
    in the middle are taken."""
    torch.manual_seed(0)
    ResNetForImageClassification(ResNetConfig(**_RESNET)).save_pretrained(folder)
    ConvNextImageProcessorPil(size={"shortest_edge": SIDE}, crop_pct=0.875).save_pretrained(folder)
    return folder
