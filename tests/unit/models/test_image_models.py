import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from preprocessors import input_of
from through_checkpoint import carry
from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.image_classifier.network import ImageModule
from trainjob.kinds.inputs.image import ImageInput
from trainjob.models import build, load_model, save_model

MakePreprocessor = Callable[..., Preprocessor]

SIZES = [(8, 8, 1), (28, 28, 1), (32, 32, 3), (5, 40, 3), (100, 60, 1)]


def image_model(**fields: object) -> Model:
    return Model.model_validate({"imageClassifier": fields})


@pytest.mark.parametrize("network", ["mlp", "cnn"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_images_of_any_size_give_logits_and_gradients_to_every_weight(
    image_preprocessor: MakePreprocessor, network: str, size: tuple[int, int, int]
) -> None:
    height, width, channels = size
    module = build(image_model(**{network: {}}), image_preprocessor(height, width, channels))
    logits = module(pixel_values=torch.randint(0, 256, (4, channels, height, width), dtype=torch.uint8))
    assert logits.shape == (4, 3)
    assert logits.dtype == torch.float32
    logits.logsumexp(dim=1).sum().backward()
    assert all(value.grad is not None for value in module.parameters())


@pytest.mark.parametrize("network", ["mlp", "cnn"])
def test_a_saved_network_loads_with_the_same_logits(
    tmp_path: Path, image_preprocessor: MakePreprocessor, network: str
) -> None:
    preprocessor, spec = image_preprocessor(8, 8, 3), image_model(**{network: {}}, loss={"binaryCrossEntropy": {}})
    module = build(spec, preprocessor)
    pixels = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    module = module.to(memory_format=torch.channels_last)  # as in training
    module(pixel_values=pixels)  # moves the statistics of batch normalization
    save_model(module, preprocessor, tmp_path)

    loaded, loaded_preprocessor = load_model(tmp_path)
    built = build(spec, preprocessor).eval()
    carry(module, built, tmp_path / "checkpoint")
    module = module.to(memory_format=torch.contiguous_format)
    expected = module.eval()(pixel_values=pixels)
    assert not loaded.training
    assert loaded_preprocessor == preprocessor
    assert torch.equal(loaded(pixel_values=pixels), expected)
    assert torch.equal(built(pixel_values=pixels), expected)
    assert torch.equal(loaded.probabilities(expected), expected.sigmoid())


def test_a_network_gets_normalized_pixels_to_the_bit(image_preprocessor: MakePreprocessor) -> None:
    """Earlier versions normalized rows with NumPy, before copying them to the device."""
    preprocessor = image_preprocessor(8, 8, 3)
    module = build(image_model(cnn={}), preprocessor).eval()
    assert isinstance(module, ImageModule)
    pixels = torch.arange(256, dtype=torch.uint8).repeat(3 * 2)[: 2 * 3 * 64].reshape(2, 3, 8, 8)
    images = input_of(preprocessor, ImageInput)
    mean, std = (np.array(value, np.float32)[:, None, None] for value in (images.mean, images.std))
    normalized = np.divide(pixels.numpy(), 255 * std, dtype=np.float32) - mean / std
    assert np.array_equal(module.normalize(pixels).numpy(), normalized)
    assert torch.equal(module(pixel_values=pixels), module.network(torch.from_numpy(normalized)))


def test_the_cnn_is_as_the_spec_says(image_preprocessor: MakePreprocessor) -> None:
    spec = image_model(cnn={"channels": [4, 6, 8], "hidden": 10}, dropout=0.3)
    module = build(spec, image_preprocessor(16, 24, 3))
    parts = list(module.modules())
    convolutions = [(part.in_channels, part.out_channels) for part in parts if isinstance(part, torch.nn.Conv2d)]
    linear = [(part.in_features, part.out_features) for part in parts if isinstance(part, torch.nn.Linear)]
    assert convolutions == [(3, 4), (4, 4), (4, 6), (6, 6), (6, 8), (8, 8)]
    assert linear == [(8 * 2 * 3, 10), (10, 3)]
    assert [part.p for part in parts if isinstance(part, torch.nn.Dropout)] == [0.3]


def test_the_mlp_is_as_the_spec_says(image_preprocessor: MakePreprocessor) -> None:
    module = build(image_model(mlp={"hidden": [7, 5]}), image_preprocessor(4, 6, 3))
    linear = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    assert [(part.in_features, part.out_features) for part in linear] == [(72, 7), (7, 5), (5, 3)]


def test_images_too_small_for_the_blocks_are_refused(image_preprocessor: MakePreprocessor) -> None:
    spec = image_model(cnn={"channels": [4, 4, 4, 4]})
    assert isinstance(build(spec, image_preprocessor(16, 16, 1)), ImageModule)
    with pytest.raises(UserError, match=r"imageClassifier\.cnn\.channels: 4 blocks .* 16 x 16 .* have 16 x 8"):
        build(spec, image_preprocessor(8, 16, 1))


def test_a_spec_for_the_other_kind_of_rows_is_an_error(image_preprocessor: MakePreprocessor) -> None:
    model = Model.model_validate({"textClassifier": {"encoder": {}}})
    with pytest.raises(ValueError, match="text_classifier can be built for a image preprocessor"):
        build(model, image_preprocessor(8, 8, 1))


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a trainjob model: it has no config\.json"):
        load_model(tmp_path)


def test_a_graph_of_an_earlier_version_gets_normalized_pixels(
    tmp_path: Path, image_preprocessor: MakePreprocessor
) -> None:
    preprocessor = image_preprocessor(2, 2, 3)
    pixels, logits = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("pixel_values", ["n", 3, 2, 2]), ("logits", ["n", 3]))
    )
    mean = onnx.helper.make_node("ReduceMean", ["pixel_values"], ["logits"], axes=[2, 3], keepdims=0)
    graph = onnx.helper.make_graph([mean], "means", [pixels], [logits])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "model.onnx",
    )
    config = {"model_type": "trainjob-onnx-classifier", "problem_type": "single_label_classification"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"classes": preprocessor.target.classes}))
    preprocessor.save(tmp_path)
    module, _ = load_model(tmp_path)
    grey = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
    assert module(pixel_values=grey).tolist() == [[2.5, 2.5, 2.5]]  # (1 - mean) / deviation
