"""The public classes of `trainjob.api`."""

from trainjob.api.baselines import Baselines
from trainjob.api.cluster import Deadlines, Pods
from trainjob.api.dataset import Cleaning, Dataset, Source, Validation
from trainjob.api.storage import Storage
from trainjob.api.training import (
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
from trainjob.api.trainjob import Metadata, TrainJob, TrainJobSpec, Workers
from trainjob.api.tuning import Tuning
from trainjob.kinds.causal_lm.spec import CausalLM, Decoder, LoRA
from trainjob.kinds.classifier import Classifier, ClassWeights, Loss
from trainjob.kinds.function.spec import Function
from trainjob.kinds.image_classifier.spec import ImageClassifier
from trainjob.kinds.image_network import CNN, MLP, Augmentation, ImageNetwork, ImageSize
from trainjob.kinds.image_regressor.spec import ImageRegressor
from trainjob.kinds.model import Model
from trainjob.kinds.table_classifier.spec import TableClassifier
from trainjob.kinds.table_network import TabM
from trainjob.kinds.table_regressor.spec import TableRegressor
from trainjob.kinds.text_classifier.spec import TextClassifier
from trainjob.kinds.text_embedder.spec import TextEmbedder
from trainjob.kinds.text_network import Encoder, TextNetwork
from trainjob.kinds.text_regressor.spec import TextRegressor
from trainjob.kinds.token_classifier.spec import TokenClassifier
from trainjob.schema.base import OneOf, StrictModel

__all__ = [
    "CNN",
    "MLP",
    "SGD",
    "Adam",
    "AdamW",
    "Augmentation",
    "Baselines",
    "CausalLM",
    "Checkpoints",
    "ClassWeights",
    "Classifier",
    "Cleaning",
    "Constant",
    "Dataset",
    "Deadlines",
    "Decoder",
    "EarlyStopping",
    "Encoder",
    "Function",
    "ImageClassifier",
    "ImageNetwork",
    "ImageRegressor",
    "ImageSize",
    "LoRA",
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
    "TabM",
    "TableClassifier",
    "TableRegressor",
    "TextClassifier",
    "TextEmbedder",
    "TextNetwork",
    "TextRegressor",
    "TokenClassifier",
    "TrainJob",
    "TrainJobSpec",
    "Training",
    "Tuning",
    "Validation",
    "WarmUp",
    "Workers",
]
