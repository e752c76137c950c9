"""Builds the model of a TrainJob."""

from typing import Any

from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.kinds.registry import load_kind
from trainjob.models.trainable import Trainable


def build(model: Model, preprocessor: Preprocessor, *, as_stored: bool = False) -> Trainable[Any]:
    """A new model, on the CPU in float32; initial weights come from torch's global random state. With `as_stored` the
    weights of a pretrained transformer are of the type that its config.json names; where its files have that type, they
    are mapped into memory and read when they are used.

    Raises UserError if the spec does not fit the pretrained network or the images.
    """
    if model.facts.field != preprocessor.kind:
        raise ValueError(f"no model.{model.chosen} can be built for a {preprocessor.input.noun} preprocessor")
    return load_kind(preprocessor.kind).build(model.kind, preprocessor.input, preprocessor.target, as_stored)
