"""Image classifiers that begin with a network of transformers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import safetensors.torch
import torch
from PIL import Image
from transformers.models.auto.image_processing_auto import AutoImageProcessor
from transformers.models.auto.modeling_auto import AutoModelForImageClassification
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel
from transformers.models.clip.configuration_clip import CLIPConfig
from transformers.models.clip.modeling_clip import CLIPForImageClassification
from transformers.models.dinov2.configuration_dinov2 import Dinov2Config
from transformers.models.dinov2.modeling_dinov2 import Dinov2ForImageClassification
from transformers.models.vit.configuration_vit import ViTConfig
from transformers.models.vit.modeling_vit import ViTForImageClassification, ViTModel

from preprocessors import image_classifier
from through_checkpoint import carry
from tiny_image_models import save_resnet, save_vit
from trainjob import Predictor
from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, pretrained_processor
from trainjob.models import TrainableClassifier, build, load_model, save_model

CLASSES = ["bird", "cat", "dog"]
PIXELS = torch.arange(4 * 3 * 16 * 16).remainder(251).to(torch.uint8).reshape(4, 3, 16, 16)
BOTH = pytest.mark.parametrize("save", [save_vit, save_resnet], ids=["vit", "resnet"])
Save = Callable[[Path], Path]
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
PATCHES: dict[str, Any] = SIZES | {"image_size": 16, "patch_size": 8}


def preprocessor_of(folder: Path) -> Preprocessor:
    return image_classifier(PretrainedImageInput.of(pretrained_processor(str(folder))), CLASSES, [1, 2, 3])


def built(folder: Path, preprocessor: Preprocessor | None = None, **fields: Any) -> TrainableClassifier[Any]:
    model = Model.model_validate({"imageClassifier": {"pretrained": str(folder), **fields}})
    classifier = build(model, preprocessor or preprocessor_of(folder))
    assert isinstance(classifier, TrainableClassifier)
    return classifier


def logits(module: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        return module.eval()(PIXELS)


@BOTH
def test_a_saved_model_gives_the_same_probabilities_here_and_in_transformers(tmp_path: Path, save: Save):
    pretrained = save(tmp_path / "pretrained")
    preprocessor = preprocessor_of(pretrained)
    save_model(built(pretrained), preprocessor, tmp_path / "model")
    images = [
        Image.radial_gradient("L").resize((40, 31)),
        Image.linear_gradient("L").resize((19, 25)).convert("RGB"),
        Image.effect_mandelbrot((50, 50), (-2, -2, 2, 2), 50),
    ]
    predictor = Predictor.load(tmp_path / "model")
    assert predictor.classes == CLASSES
    found = torch.from_numpy(predictor.predict_proba(images))

    network = AutoModelForImageClassification.from_pretrained(tmp_path / "model")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "model", backend="pil")
    with torch.inference_mode():
        pixels = processor([image.convert("RGB") for image in images], return_tensors="pt")
        expected = network(**pixels).logits.softmax(dim=1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert network.config.id2label == dict(enumerate(CLASSES))


@BOTH
def test_it_begins_with_the_pretrained_weights_and_another_head(tmp_path: Path, save: Save):
    save(tmp_path)
    weights = AutoModelForImageClassification.from_pretrained(tmp_path).state_dict()
    found = built(tmp_path).network.state_dict()
    assert {name for name, value in weights.items() if not torch.equal(found[name], value)} == {
        name for name in weights if name.startswith("classifier")
    }
    assert logits(built(tmp_path)).shape == (4, 3)


def test_a_checkpoint_without_a_head_is_taken(tmp_path: Path):
    save_vit(tmp_path)
    ViTModel(ViTForImageClassification.from_pretrained(tmp_path).config).save_pretrained(tmp_path)
    assert logits(built(tmp_path)).shape == (4, 3)


@BOTH
def test_only_the_head_of_a_frozen_network_learns(tmp_path: Path, save: Save):
    module = built(save(tmp_path), freezeEncoder=True, dropout=0.0).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    optimizer = torch.optim.SGD([value for value in module.parameters() if value.requires_grad], lr=0.1)
    module(PIXELS).logsumexp(dim=1).sum().backward()
    optimizer.step()
    changed = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert {name for name in changed if not name.startswith("network.classifier.")} == set()


def test_the_rest_of_a_network_that_is_not_frozen_learns(tmp_path: Path):
    module = built(save_resnet(tmp_path)).train()
    mean = module.network.resnet.embedder.embedder.normalization.running_mean.clone()
    module(PIXELS).sum().backward()
    assert all(value.grad is not None for value in module.parameters())
    assert not torch.equal(module.network.resnet.embedder.embedder.normalization.running_mean, mean)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_head_has_dropout_in_training_alone(tmp_path: Path, dropout: float):
    module = built(save_resnet(tmp_path), dropout=dropout, freezeEncoder=True).train()
    assert torch.equal(module(PIXELS), module(PIXELS)) == (dropout == 0)
    assert torch.equal(logits(module), logits(module))


def save_clip(folder: Path) -> Path:
    config = CLIPConfig(vision_config=PATCHES, text_config={**SIZES, "vocab_size": 50})
    config.num_labels = 2
    save_vit(folder)  # its image processor
    CLIPForImageClassification(config).save_pretrained(folder)
    return folder


def save_dinov2(folder: Path) -> Path:
    save_vit(folder)
    Dinov2ForImageClassification(Dinov2Config(**PATCHES)).save_pretrained(folder)
    return folder


def test_the_encoder_of_clip_can_be_frozen(tmp_path: Path):
    module = built(save_clip(tmp_path), freezeEncoder=True)
    learned = {name for name, value in module.named_parameters() if value.requires_grad}
    assert learned == {"network.classifier.weight", "network.classifier.bias"}


@pytest.mark.parametrize(("save", "unused"), [(save_clip, "post_layernorm.weight"), (save_dinov2, "mask_token")])
def test_what_nothing_depends_on_is_frozen(tmp_path: Path, save: Save, unused: str):
    module = built(save(tmp_path))
    assert module.training
    module(PIXELS).sum().backward()
    weights = dict(module.named_parameters())
    assert [name for name, value in weights.items() if value.requires_grad != (value.grad is not None)] == []
    assert [value.requires_grad for name, value in weights.items() if name.endswith(unused)] == [False]


def test_weights_of_a_checkpoint_are_restored(tmp_path: Path):
    save_vit(tmp_path / "vit")
    saved, other = built(tmp_path / "vit"), built(tmp_path / "vit")
    assert not torch.equal(logits(saved), logits(other))
    expected = logits(saved)
    saved = saved.to(memory_format=torch.channels_last)  # as in training
    carry(saved, other, tmp_path / "checkpoint")
    assert torch.equal(logits(other), expected)


def test_what_is_no_image_classifier_is_named(tmp_path: Path):
    processor = preprocessor_of(save_vit(tmp_path))

    def refused(expected: str) -> None:
        with pytest.raises(UserError, match=rf"^spec.model.imageClassifier.pretrained: .*{expected}"):
            built(tmp_path, processor)

    config = tmp_path / "config.json"
    vit = config.read_text()
    BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2)).save_pretrained(tmp_path)
    refused("cannot load .*, which must be a folder with a transformers image classifier .*BertConfig")
    config.write_text(vit)
    safetensors.torch.save_file({"other": torch.zeros(1)}, tmp_path / "model.safetensors", {"format": "pt"})
    refused("the files of .* hold none of its weights, such as vit")
    config.write_text(json.dumps(json.loads(vit) | {"model_type": "no-such-type"}))
    refused("cannot load .*no-such-type")
    config.write_text("{}")
    refused("cannot load")
    config.unlink()
    refused("cannot load")


def test_weights_that_do_not_fit_are_named(tmp_path: Path):
    preprocessor = preprocessor_of(save_vit(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"intermediate_size": 48}))
    with pytest.raises(UserError, match=r"do not have the shapes in its config.json: vit.layers.0.mlp.fc1.bias, "):
        built(tmp_path, preprocessor)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UserError, match="pretrained: cannot load"):
        built(tmp_path, preprocessor)


def test_images_that_the_network_does_not_take_are_named(tmp_path: Path):
    save_vit(tmp_path, size={"height": 24, "width": 24})
    with pytest.raises(UserError, match=r"makes images of 24 x 24 pixels in 3 channels, which its network does not t"):
        built(tmp_path)
    save_vit(tmp_path)
    grey = ViTConfig(num_channels=1, image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=1)
    grey.num_labels = 2
    ViTForImageClassification(grey).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"makes images of 16 x 16 pixels in 3 channels, which its network does not t"):
        built(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path):
    missing = re.escape(str(tmp_path / "missing"))
    with pytest.raises(UserError, match=rf"^spec.model.imageClassifier.pretrained: there is no folder {missing}"):
        built(tmp_path / "missing", preprocessor_of(save_vit(tmp_path / "vit")))


def test_a_damaged_model_is_named(tmp_path: Path):
    save_vit(tmp_path / "vit")
    save_model(built(tmp_path / "vit"), preprocessor_of(tmp_path / "vit"), tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UserError, match="the model is damaged"):
        load_model(tmp_path / "model")


def test_images_that_cannot_be_read_are_named_when_predicting(tmp_path: Path):
    save_vit(tmp_path / "vit")
    save_model(built(tmp_path / "vit"), preprocessor_of(tmp_path / "vit"), tmp_path / "model")
    table = pa.table({"image": pa.array([b"no image"], pa.binary())})
    with pytest.raises(UserError, match=r"row 1 is not a valid image file"):
        Predictor.load(tmp_path / "model").predict(table)
