"""Building, saving and loading models.

Importing transformers takes seconds, so it is imported for the models that need it only.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from trainjob.api import Model, TrainJobSpec
from trainjob.data import CausalPreprocessor, ImagePreprocessor, Preprocessor, TextPreprocessor, load_preprocessor
from trainjob.data.text import PREPROCESSOR_FILE
from trainjob.errors import UserError
from trainjob.models import image, onnx
from trainjob.models.classification import Classification
from trainjob.models.classifier import Classifier
from trainjob.models.objective import Objective
from trainjob.models.trainable import Trainable

if TYPE_CHECKING:
    from trainjob.models.causal import CausalLM


def build(model: Model, preprocessor: Preprocessor, *, as_stored: bool = False) -> Trainable[Any]:
    """A new model, on the CPU in float32; initial weights come from torch's global random state. With `as_stored` the
    weights of a pretrained transformer are of the type that its config.json names; where its files have that type, they
    are mapped into memory and read when they are used.

    Raises UserError if the spec does not fit the pretrained network or the images.
    """
    if model.text_classifier is not None and isinstance(preprocessor, TextPreprocessor):
        from trainjob.models import text

        return text.build(model.text_classifier, preprocessor, as_stored)
    if model.causal_lm is not None and isinstance(preprocessor, CausalPreprocessor):
        from trainjob.models import causal

        return causal.build(model.causal_lm, preprocessor, as_stored)
    if model.image_classifier is not None and isinstance(preprocessor, ImagePreprocessor):
        if model.pretrained is not None:
            from trainjob.models import pretrained_image

            return pretrained_image.build(model.image_classifier, preprocessor)
        return image.build(model.image_classifier, preprocessor)
    raise ValueError(f"no model.{model.chosen} can be built for a {preprocessor.kind} preprocessor")


def objective_of(spec: TrainJobSpec, preprocessor: Preprocessor, module: Trainable[Any]) -> Objective:
    """What is asked of `module`. Raises UserError if the class weights do not name exactly the classes of the data."""
    if isinstance(module, Classifier):
        return Classification(spec, preprocessor, module)
    from trainjob.models.causal import NextToken

    return NextToken(compiled=spec.training.compile)


def save_model(module: Trainable[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """Write model.safetensors, config.json and the preprocessor's files into `folder`, which need not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    module.save(folder)
    preprocessor.save(folder)


def save_config(module: Trainable[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """The same without the weights."""
    module.save_config(folder)
    preprocessor.save(folder)


def load_model(folder: Path) -> tuple[Classifier[Any], Preprocessor]:
    """The classifier that `save_model` wrote: the module in eval mode on the CPU, and its preprocessor.

    Raises UserError if the folder holds no classifier, or a damaged one.
    """
    preprocessor = load_preprocessor(folder) if (folder / PREPROCESSOR_FILE).is_file() else None
    if isinstance(preprocessor, CausalPreprocessor):
        raise UserError(
            f"{folder} holds a language model, and no classifier: `trainjob predict` continues texts with it"
        )
    with _sound(folder):
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder} holds no model of trainjob: it has no config.json")
        weights, load = _format(json.loads((folder / "config.json").read_bytes())["model_type"], preprocessor)
        for name in (weights, PREPROCESSOR_FILE):
            if not (folder / name).is_file():
                raise UserError(f"{folder} holds no model of trainjob: it has no {name}")
        assert preprocessor is not None, "its file is there"
        return load(folder).eval(), preprocessor


@contextmanager
def _sound(folder: Path) -> Generator[None]:
    """Says which model is damaged when one cannot be loaded."""
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder}: the model is damaged: {error}") from error


def _format(model_type: str, preprocessor: Preprocessor | None) -> tuple[str, Callable[[Path], Classifier[Any]]]:
    """The file with the weights, and what loads the model from its folder."""
    if model_type == image.MODEL_TYPE:
        return "model.safetensors", image.load
    if model_type == onnx.MODEL_TYPE:
        return onnx.FILE, onnx.OnnxClassifier
    if isinstance(preprocessor, ImagePreprocessor):
        from trainjob.models import pretrained_image

        return "model.safetensors", pretrained_image.load
    from trainjob.models import text

    return "model.safetensors", text.load


def load_language_model(folder: Path) -> "tuple[CausalLM, CausalPreprocessor]":
    """The same for a language model."""
    preprocessor = load_preprocessor(folder)
    if not isinstance(preprocessor, CausalPreprocessor):
        raise UserError(f"{folder} holds no language model")
    from trainjob.models import causal

    with _sound(folder):
        return causal.load(folder, preprocessor).eval(), preprocessor
