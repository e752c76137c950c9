"""Building, saving and loading classifiers. transformers takes seconds to import, so only text classifiers do."""

import json
from pathlib import Path

import safetensors.torch

from trainjob.api import Model
from trainjob.data import Preprocessor, load_preprocessor
from trainjob.errors import UserError
from trainjob.models import image
from trainjob.models.classifier import Classifier


def build(model: Model, preprocessor: Preprocessor) -> Classifier:
    """A new classifier, on the CPU in float32; initial weights come from torch's global random state.

    Raises UserError where the spec does not fit the pretrained encoder or the images.
    """
    if model.text_classifier is not None:
        from trainjob.models import text

        return text.build(model.text_classifier, preprocessor)
    if model.image_classifier is not None:
        return image.build(model.image_classifier, preprocessor)
    raise ValueError("a function builds its own model")


def save_model(module: Classifier, preprocessor: Preprocessor, folder: Path) -> None:
    """Write model.safetensors, config.json and the preprocessor's files into `folder`, made if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    module.save(folder)
    preprocessor.save(folder)


def load_model(folder: Path) -> tuple[Classifier, Preprocessor]:
    """What `save_model` wrote: the module in eval mode on the CPU, and its preprocessor."""
    for name in ("config.json", "model.safetensors", "preprocessor.json"):
        if not (folder / name).is_file():
            raise UserError(f"{folder} holds no model of trainjob: it has no {name}")
    if json.loads((folder / "config.json").read_bytes())["model_type"] == image.MODEL_TYPE:
        module = image.load(folder)
    else:
        from trainjob.models import text

        module = text.load(folder)
    return module.eval(), load_preprocessor(folder)


def load_weights(module: Classifier, folder: Path) -> None:
    """Put the weights that `save_model` wrote into a module of the same architecture, such as `build` makes."""
    module.network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
