"""Models and losses: built from a TrainJob and a fitted preprocessor, saved as safetensors and config.json."""

from trainjob.models.classifier import Classifier
from trainjob.models.losses import distilled_losses, sample_losses
from trainjob.models.store import build, load_model, load_weights, save_model

__all__ = ["Classifier", "build", "distilled_losses", "load_model", "load_weights", "sample_losses", "save_model"]
