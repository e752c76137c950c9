"""The TrainJob type: pydantic models from which everything else is derived. No torch, no ray."""

from trainjob.api.base import OneOf, Spec
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
    EarlyStopping,
    Optimizer,
    ReduceOnPlateau,
    Scheduler,
    Training,
    WarmUp,
)
from trainjob.api.trainjob import Metadata, Storage, TrainJob, TrainJobSpec, Workers

__all__ = [name for name in dir() if name[0].isupper()]
