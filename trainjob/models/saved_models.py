"""Saves and loads models.

Importing transformers takes seconds, so it is imported only for the models that need it.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import nn

from trainjob.data import Preprocessor, load_preprocessor
from trainjob.data.preprocessor import PREPROCESSOR_FILE
from trainjob.errors import UserError
from trainjob.kinds import KINDS
from trainjob.kinds.registry import load_kind
from trainjob.models import linear, onnx, tfidf, trees
from trainjob.models.trainable import Trainable

_BASELINES = {
    trees.MODEL_TYPE: trees.load_trees,
    linear.MODEL_TYPE: linear.load_linear,
    tfidf.MODEL_TYPE: tfidf.load_tfidf,
}
"""Loads a baseline that is kept as a variant, by the model_type of its config.json."""


def save_model(module: Trainable[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """Write model.safetensors, config.json and the preprocessor's files into `folder`, which need not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    module.save(folder)
    preprocessor.save(folder)


def save_config(module: Trainable[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """The same without the weights."""
    module.save_config(folder)
    preprocessor.save(folder)


def load_model(folder: Path, *, only_to_answer: bool = False) -> tuple[Any, Preprocessor]:
    """The model that `save_model` wrote, which answers each row: the module in eval mode on the CPU, and its
    preprocessor. With `only_to_answer` it may be a module of another class that starts sooner and gives the same
    answers, but has no methods for training and saving.

    Raises UserError if the folder holds no such model, or a damaged one.
    """
    preprocessor = _preprocessor_in(folder)
    if preprocessor is not None and _generates(preprocessor):
        raise UserError(
            f"{folder} has a language model, which answers no rows: use `trainjob predict`, or TextGenerator"
        )
    return _model_in(folder, preprocessor, only_to_answer)


def load_language_model(folder: Path) -> tuple[Any, Preprocessor]:
    """The same for a language model."""
    preprocessor = load_preprocessor(folder)
    if not _generates(preprocessor):
        raise UserError(f"{folder} has {KINDS[preprocessor.kind].a_noun}, which continues no texts: use Predictor")
    return _language_model_in(folder, preprocessor)


def load_any_model(folder: Path) -> tuple[nn.Module, Preprocessor]:
    """The same for a model of any kind."""
    preprocessor = _preprocessor_in(folder)
    if preprocessor is not None and _generates(preprocessor):
        return _language_model_in(folder, preprocessor)
    return _model_in(folder, preprocessor)


def _preprocessor_in(folder: Path) -> Preprocessor | None:
    return load_preprocessor(folder) if (folder / PREPROCESSOR_FILE).is_file() else None


def _generates(preprocessor: Preprocessor) -> bool:
    return "generation" in KINDS[preprocessor.kind].abilities


def _model_in(
    folder: Path, preprocessor: Preprocessor | None, only_to_answer: bool = False
) -> tuple[Any, Preprocessor]:
    with _refuse_damaged(folder):
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder} is not a trainjob model: it has no config.json")
        model_type = json.loads((folder / "config.json").read_bytes())["model_type"]
        weights = {onnx.MODEL_TYPE: onnx.FILE, trees.MODEL_TYPE: trees.FILE}.get(model_type, "model.safetensors")
        for name in (weights, PREPROCESSOR_FILE):
            if not (folder / name).is_file():
                raise UserError(f"{folder} is not a trainjob model: it has no {name}")
        assert preprocessor is not None, "its file is there"
        if load_baseline := _BASELINES.get(model_type):
            return load_baseline(folder, preprocessor)
        is_graph = model_type == onnx.MODEL_TYPE
        module = onnx.OnnxClassifier(folder) if is_graph else _saved(folder, preprocessor, only_to_answer)
        return module.eval(), preprocessor


def _language_model_in(folder: Path, preprocessor: Preprocessor) -> tuple[Any, Preprocessor]:
    with _refuse_damaged(folder):
        return _saved(folder, preprocessor).eval(), preprocessor


def _saved(folder: Path, preprocessor: Preprocessor, only_to_answer: bool = False) -> nn.Module:
    kind = load_kind(preprocessor.kind)
    load = kind.load_to_answer if only_to_answer else kind.load
    return load(folder, preprocessor.input)


@contextmanager
def _refuse_damaged(folder: Path) -> Generator[None]:
    """Within the block, an error of loading becomes a UserError that names the damaged model."""
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder}: the model is damaged: {error}") from error
