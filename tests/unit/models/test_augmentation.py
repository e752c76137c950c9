"""Random cuts and mirror images of what a network trains on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from preprocessors import image_classifier
from tiny_image_models import save_resnet
from trainjob.api import Augmentation, Model
from trainjob.data import Preprocessor
from trainjob.kinds.image_classifier.augmentation import augment
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, pretrained_processor
from trainjob.models import build, load_model, save_model

IMAGES = torch.arange(24.0).expand(400, 1, 18, 24) + 100 * torch.arange(18.0)[:, None]
"""Each pixel says where it is: 100 for each row and 1 for each column."""


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def steps(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The distance between the center pixels in the source image: horizontal and vertical, each [n]."""
    across, down = images[:, 0, 9, 13] - images[:, 0, 9, 11], images[:, 0, 10, 12] - images[:, 0, 8, 12]
    return across / 2, down / 200


def test_neither_cut_nor_mirrored_an_image_stays_as_it_is():
    torch.testing.assert_close(augment(IMAGES, Augmentation(crop=1, flip=0)), IMAGES, atol=1e-3, rtol=0)


def test_a_mirrored_image():
    torch.testing.assert_close(augment(IMAGES, Augmentation(crop=1, flip=1)), IMAGES.flip(3), atol=1e-3, rtol=0)


def test_half_of_the_images_are_mirrored():
    across, _ = steps(augment(IMAGES, Augmentation(crop=1, flip=0.5)))
    assert 160 < int((across < 0).sum()) < 240


def test_cuts_have_the_shares_and_ratios_that_are_promised():
    across, down = steps(augment(IMAGES, Augmentation(crop=0.35, flip=0)))
    area, ratio = across * down, across / down
    assert 0.34 < float(area.min()) < 0.38
    assert 0.85 < float(area.max()) <= 1.001
    assert 0.74 < float(ratio.min()) < 0.8
    assert 1.25 < float(ratio.max()) < 1.34


def test_cuts_lie_everywhere_and_inside():
    cut = augment(IMAGES, Augmentation(crop=0.35, flip=0))
    corners = cut[:, 0, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert float(corners.min()) >= 0
    assert float(corners.max()) <= 1723
    assert corners.round(decimals=3).unique(dim=0).shape == (400, 4)


def test_only_training_sees_changed_images(tmp_path: Path, image_preprocessor: Callable[..., Preprocessor]):
    save_resnet(tmp_path / "resnet")
    processor = pretrained_processor(str(tmp_path / "resnet"))
    pretrained = image_classifier(PretrainedImageInput.of(processor), ["bird", "cat", "dog"], [1, 2, 3])
    networks: list[tuple[dict[str, Any], Preprocessor]] = [
        ({"cnn": {}}, image_preprocessor(16, 16, 3)),
        ({"pretrained": str(tmp_path / "resnet"), "freezeEncoder": True}, pretrained),
    ]
    pixels = torch.arange(4 * 3 * 16 * 16).remainder(251).to(torch.uint8).reshape(4, 3, 16, 16)
    for number, (network, preprocessor) in enumerate(networks):
        model = Model.model_validate({"imageClassifier": {**network, "dropout": 0, "augmentation": {}}})
        module = build(model, preprocessor)
        assert not torch.equal(module.train()(pixels), module(pixels))
        expected = module.eval()(pixels)
        assert torch.equal(module(pixels), expected)
        (tmp_path / str(number)).mkdir()
        save_model(module, preprocessor, tmp_path / str(number))
        assert torch.equal(load_model(tmp_path / str(number))[0].eval()(pixels), expected)
