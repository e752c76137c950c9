"""Defaults that depend on other fields of the spec."""

from math import ceil

from trainjob.api.baselines import Baselines
from trainjob.api.training import Constant, Optimizer, Scheduler, Training, WarmUp
from trainjob.api.trainjob import TrainJob, TrainJobSpec
from trainjob.kinds.classifier import SEVERAL_LABELS_LOSS
from trainjob.kinds.model import KindSpec, Model

BATCH_SIZE = 32


def with_defaults(job: TrainJob) -> TrainJob:
    """`job` with all defaults that depend on other fields.

    The batch is 32 rows, or the next multiple of the workers. A pretrained model gets a small learning rate, and the
    head of a frozen encoder a large one, both with warm-up and linear decay; one from scratch gets a constant one.
    With `dataset.labels`, the loss of a classifier is binaryCrossEntropy; in a column of labels, the rows decide.
    """
    spec = job.spec
    training = _filled(spec.training, spec.model, spec.workers.count)
    baselines = usual_baselines(spec.model) if spec.baselines is None else spec.baselines
    filled = {"training": training, "baselines": baselines, "model": _with_loss(spec)}
    return job.model_copy(update={"spec": spec.model_copy(update=filled)})


def usual_baselines(model: Model) -> Baselines | None:
    """The default baselines of the kind of model; None if it has none."""
    return Baselines(**{name: {} for name in model.facts.usual_baselines}) if model.facts.baselines else None


def _with_loss(spec: TrainJobSpec) -> Model:
    has_labels = spec.dataset is not None and spec.dataset.labels is not None
    if not has_labels or not spec.model.facts.takes_several_labels:
        return spec.model
    classifier = spec.model.kind.model_copy(update={"loss": SEVERAL_LABELS_LOSS})
    return spec.model.model_copy(update={spec.model.chosen: classifier})


def _filled(training: Training, model: Model, workers: int) -> Training:
    chosen: dict[str, object] = {}
    if "batch_size" not in training.model_fields_set:
        chosen["batch_size"] = ceil(BATCH_SIZE / workers) * workers
    if "scheduler" not in training.model_fields_set:
        chosen["scheduler"] = Scheduler(linear=WarmUp()) if model.pretrained else Scheduler(constant=Constant())
    chosen["optimizer"] = _with_rate(training.optimizer, model.kind)
    return training.model_copy(update=chosen)


def _with_rate(optimizer: Optimizer, kind: KindSpec) -> Optimizer:
    """Sets the kind's default learning rate for Adam and AdamW; SGD's does not depend on the model."""
    name = optimizer.chosen
    adam = optimizer.adam or optimizer.adam_w
    if adam is None or "learning_rate" in adam.model_fields_set:
        return optimizer
    return optimizer.model_copy(update={name: adam.model_copy(update={"learning_rate": kind.usual_learning_rate})})
