"""The TrainJob type: pydantic models from which everything else is derived. No torch, no ray."""

from trainjob.api.base import OneOf, StrictModel
from trainjob.api.baselines import Baselines
from trainjob.api.cluster import Deadlines, Pods
from trainjob.api.dataset import Cleaning, Dataset, Source, Validation
from trainjob.api.model import (
    CNN,
    MLP,
    Classifier,
    ClassWeights,
    Encoder,
    Function,
    ImageClassifier,
    ImageSize,
    Loss,
    Model,
    TextClassifier,
)
from trainjob.api.training import (
    CLASSIFIER_METRICS,
    SGD,
    Adam,
    AdamW,
    Checkpoints,
    Constant,
    EarlyStopping,
    Optimizer,
    ReduceOnPlateau,
    Scheduler,
    Training,
    WarmUp,
)
from trainjob.api.trainjob import Metadata, Storage, TrainJob, TrainJobSpec, Workers
from trainjob.api.tuning import Tuning

__all__ = [
    "CLASSIFIER_METRICS",
    "CNN",
    "MLP",
    "SGD",
    "Adam",
    "AdamW",
    "Baselines",
    "Checkpoints",
    "ClassWeights",
    "Classifier",
    "Cleaning",
    "Constant",
    "Dataset",
    "Deadlines",
    "EarlyStopping",
    "Encoder",
    "Function",
    "ImageClassifier",
    "ImageSize",
    "Loss",
    "Metadata",
    "Model",
    "OneOf",
    "Optimizer",
    "Pods",
    "ReduceOnPlateau",
    "Scheduler",
    "Source",
    "Storage",
    "StrictModel",
    "TextClassifier",
    "TrainJob",
    "TrainJobSpec",
    "Training",
    "Tuning",
    "Validation",
    "WarmUp",
    "Workers",
]
