"""Models and losses: built from a TrainJob and a fitted preprocessor, saved as safetensors and config.json."""

from trainjob.models.classifier import TrainableClassifier
from trainjob.models.factory import build
from trainjob.models.objective import Objective
from trainjob.models.saved_models import (
    load_any_model,
    load_language_model,
    load_model,
    save_config,
    save_model,
)
from trainjob.models.trainable import Trainable

__all__ = [
    "Objective",
    "Trainable",
    "TrainableClassifier",
    "build",
    "load_any_model",
    "load_language_model",
    "load_model",
    "save_config",
    "save_model",
]
