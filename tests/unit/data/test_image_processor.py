"""Images as a pretrained network's own image processor prepares them."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from transformers.models.auto.image_processing_auto import AutoImageProcessor
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil
from transformers.models.mobilevit.image_processing_pil_mobilevit import MobileViTImageProcessorPil
from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil

from preprocessors import image_classifier
from tiny_image_models import SIDE, save_resnet, save_vit
from trainjob.data import Examples, load_preprocessor
from trainjob.errors import DataError
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, pretrained_processor


def of(folder: Path) -> PretrainedImageInput:
    return PretrainedImageInput.of(pretrained_processor(str(folder)))


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    image.save(content, kind)
    return content.getvalue()


def inputs(preprocessor: PretrainedImageInput, images: list[bytes]) -> np.ndarray:
    values = preprocessor.transform(pa.table({"image": pa.array(images, pa.binary())}))
    examples = Examples.from_table(pa.table({"values": values, "label": np.zeros(len(values), np.int64)}))
    divisor, subtrahend = preprocessor.normalization
    return preprocessor.batch(examples)["pixel_values"] / divisor - subtrahend


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


@pytest.mark.parametrize(
    "save",
    [
        save_vit,
        save_resnet,
        lambda folder: save_vit(folder, do_normalize=False),
        lambda folder: save_vit(folder, do_rescale=False, image_mean=[120.0, 110, 100], image_std=[60.0, 61, 62]),
        lambda folder: CLIPImageProcessorPil(
            size={"shortest_edge": 20}, crop_size={"height": 16, "width": 18}
        ).save_pretrained(folder),
        lambda folder: MobileViTImageProcessorPil().save_pretrained(folder),  # BGR
        lambda folder: EfficientNetImageProcessorPil(rescale_offset=True).save_pretrained(folder),
    ],
    ids=["vit", "resnet", "not-normalized", "not-rescaled", "clip", "mobilevit", "efficientnet"],
)
def test_the_network_gets_what_transformers_makes_of_images_of_any_size_and_mode(tmp_path: Path, save: Any):
    save(tmp_path)
    images = [
        noise(33, 21),
        noise(20, 47, "L"),
        noise(16, 16, "RGBA"),
        noise(9, 5, "P"),
        noise(31, 31, "1"),
        noise(3, 2, "CMYK"),
    ]
    kinds = ["PNG", "JPEG", "PNG", "GIF", "PNG", "TIFF"]
    files = [encoded(image, kind) for image, kind in zip(images, kinds, strict=True)]
    preprocessor = of(tmp_path)
    found = inputs(preprocessor, files)
    assert found.dtype == np.float32
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    decoded = [Image.open(io.BytesIO(file)).convert("RGB") for file in files]
    expected = processor(decoded, return_tensors="np")["pixel_values"]
    assert found.shape == expected.shape == (6, 3, preprocessor.height, preprocessor.width)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_it_is_saved_for_trainjob_and_for_transformers(tmp_path: Path):
    images = of(save_resnet(tmp_path / "resnet"))
    preprocessor = image_classifier(images, ["a", "b"], [3, 4])
    (tmp_path / "model").mkdir()
    preprocessor.save(tmp_path / "model")
    assert load_preprocessor(tmp_path / "model") == preprocessor
    processor = AutoImageProcessor.from_pretrained(tmp_path / "model", backend="pil")
    image = noise(40, 30)
    expected = processor(image, return_tensors="np")["pixel_values"]
    np.testing.assert_allclose(inputs(images, [encoded(image)]), expected, atol=1e-4)
    assert "processor" not in json.loads((tmp_path / "model" / "preprocessor.json").read_text())

    (tmp_path / "model" / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match=r"model has no preprocessor_config.json: the model is incomplete"):
        load_preprocessor(tmp_path / "model")


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (
            {"size": {"shortest_edge": SIDE}},
            "it gives images of different shapes different sizes: it has no crop_size, or no",
        ),
        ({"do_resize": False}, "it gives images of different shapes different sizes"),
        ({"image_std": [-1.0, 1.0, 1.0]}, "it turns white and black images into the same array"),
        ({"size": {"depth": 3}}, "preprocessor_config.json"),
    ],
)
def test_a_processor_that_gives_no_fixed_size_is_refused(tmp_path: Path, processor: dict[str, Any], expected: str):
    save_vit(tmp_path)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | processor))
    with pytest.raises(DataError, match=r"^spec.model.imageRegressor.pretrained: ") as caught:
        pretrained_processor(str(tmp_path), "spec.model.imageRegressor.pretrained")
    assert expected in str(caught.value)


def test_a_processor_that_cuts_patches_is_refused(tmp_path: Path):
    Siglip2ImageProcessorPil().save_pretrained(tmp_path)
    with pytest.raises(DataError, match=r"cannot be used: it turns images into arrays of shape \[256, 768\], not \[3"):
        pretrained_processor(str(tmp_path))


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"image_processor_type": "NoSuchProcessor"}'])
def test_a_folder_without_a_sound_processor_is_refused(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(DataError, match=r"^spec.model.imageRegressor.pretrained: .* has no usable image processor"):
        pretrained_processor(str(tmp_path), "spec.model.imageRegressor.pretrained")


def test_code_beside_a_processor_is_never_run(tmp_path: Path):
    (tmp_path / "own.py").write_text("raise SystemExit('was run')")
    config = {"image_processor_type": "Own", "auto_map": {"AutoImageProcessor": "own.Own"}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match="has no usable image processor"):
        pretrained_processor(str(tmp_path))


def test_images_that_are_too_long_are_named(tmp_path: Path):
    preprocessor = of(save_resnet(tmp_path))
    assert inputs(preprocessor, [encoded(noise(32, 1))]).shape == (1, 3, SIDE, SIDE)
    with pytest.raises(DataError, match=r"^row 2 is 33 x 1 pixels: when images are resized for a pre"):
        inputs(preprocessor, [encoded(noise(32, 1)), encoded(noise(33, 1))])
