"""Random changes of the images that a network trains on."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from trainjob.kinds.image_network import Augmentation

LOG_RATIO = math.log(4 / 3)
"""Most that a cut is stretched, in either direction."""


def augment(images: Tensor, augmentation: Augmentation) -> Tensor:
    """Images float [n, C, H, W], each cut and mirrored by chance, in the same shape.

    The cuts are those of Szegedy et al., 2014 (Going Deeper with Convolutions): a uniform share of the area, and a
    uniform logarithm of the ratio of its sides. The numbers come from PyTorch's random generator of the device.
    """
    share, ratio, across, down, mirror = torch.rand(5, len(images), device=images.device)
    area = augmentation.crop + (1 - augmentation.crop) * share
    stretch = torch.exp(LOG_RATIO * (2 * ratio - 1) / 2) if augmentation.crop < 1 else torch.ones_like(ratio)
    width, height = (area.sqrt() * stretch).clamp(max=1), (area.sqrt() / stretch).clamp(max=1)
    sign = torch.where(mirror < augmentation.flip, -1.0, 1.0)
    zero = torch.zeros_like(width)
    rows = [sign * width, zero, (1 - width) * (2 * across - 1), zero, height, (1 - height) * (2 * down - 1)]
    cuts = torch.stack(rows, dim=1).reshape(-1, 2, 3)
    grid = functional.affine_grid(cuts, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
