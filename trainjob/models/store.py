"""Building, saving and loading classifiers.

Importing transformers takes seconds, so it is imported for text classifiers only.
"""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from trainjob.api import Model
from trainjob.data import ImagePreprocessor, Preprocessor, TextPreprocessor, load_preprocessor
from trainjob.errors import UserError
from trainjob.models import image
from trainjob.models.classifier import Classifier


def build(model: Model, preprocessor: Preprocessor) -> Classifier[Any]:
    """A new classifier, on the CPU in float32; initial weights come from torch's global random state.

    Raises UserError if the spec does not fit the pretrained encoder or the images.
    """
    if model.text_classifier is not None and isinstance(preprocessor, TextPreprocessor):
        from trainjob.models import text

        return text.build(model.text_classifier, preprocessor)
    if model.image_classifier is not None and isinstance(preprocessor, ImagePreprocessor):
        return image.build(model.image_classifier, preprocessor)
    raise ValueError(f"no model.{model.chosen} can be built for a {preprocessor.kind} preprocessor")


def save_model(module: Classifier[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """Write model.safetensors, config.json and the preprocessor's files into `folder`, which need not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    module.save(folder)
    preprocessor.save(folder)


def load_model(folder: Path) -> tuple[Classifier[Any], Preprocessor]:
    """What `save_model` wrote: the module in eval mode on the CPU, and its preprocessor.

    Raises UserError if the folder holds no model, or a damaged one.
    """
    for name in ("config.json", "model.safetensors", "preprocessor.json"):
        if not (folder / name).is_file():
            raise UserError(f"{folder} holds no model of trainjob: it has no {name}")
    try:
        if json.loads((folder / "config.json").read_bytes())["model_type"] == image.MODEL_TYPE:
            module = image.load(folder)
        else:
            from trainjob.models import text

            module = text.load(folder)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder}: the model is damaged: {error}") from error
    return module.eval(), load_preprocessor(folder)


def load_weights(module: Classifier[Any], folder: Path) -> None:
    """Load the weights that `save_model` wrote into a module of the same architecture."""
    module.network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
