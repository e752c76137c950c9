"""What `spec.training` and `spec.baselines` are where they say nothing and the best choice depends on the model."""

from trainjob.api.baselines import Baselines, MostFrequent, Pixels, Tfidf
from trainjob.api.model import Model
from trainjob.api.training import Constant, Optimizer, Scheduler, Training, WarmUp
from trainjob.api.trainjob import TrainJob

BATCH_SIZE = 32
PRETRAINED_RATE = 1e-4
"""Fine-tuning moves weights that are good already: at 1e-3 they lose much of what they know."""
FROZEN_RATE = 1e-1
"""A linear head on fixed features."""
LANGUAGE_MODEL_RATE = 2e-5
"""A pretrained language model knows more that can be lost."""
LORA_RATE = 2e-4
"""An adapter begins at zero, and what is known already stays."""
SCRATCH_RATE = 1e-3


def with_defaults(job: TrainJob) -> TrainJob:
    """`job` with every field filled in whose default depends on the model or on the number of workers.

    The batch is 32 rows, or the next multiple of the workers. A pretrained model gets a small learning rate, or an
    encoder's head alone a large one, with a warm-up and a linear fall; a network from scratch gets a constant one.
    """
    spec = job.spec
    training = _filled(spec.training, spec.model, spec.workers.count)
    baselines = usual_baselines(spec.model) if spec.baselines is None else spec.baselines
    return job.model_copy(update={"spec": spec.model_copy(update={"training": training, "baselines": baselines})})


def usual_baselines(model: Model) -> Baselines | None:
    """What costs seconds; for classifiers."""
    if model.text_classifier is not None:
        return Baselines(most_frequent=MostFrequent(), tfidf=Tfidf())
    if model.image_classifier is not None:
        return Baselines(most_frequent=MostFrequent(), pixels=Pixels())
    return None


def _filled(training: Training, model: Model, workers: int) -> Training:
    chosen: dict[str, object] = {}
    if "batch_size" not in training.model_fields_set:
        chosen["batch_size"] = -(-BATCH_SIZE // workers) * workers
    if "scheduler" not in training.model_fields_set:
        chosen["scheduler"] = Scheduler(linear=WarmUp()) if model.pretrained else Scheduler(constant=Constant())
    chosen["optimizer"] = _with_rate(training.optimizer, _learning_rate(model))
    return training.model_copy(update=chosen)


def _with_rate(optimizer: Optimizer, rate: float) -> Optimizer:
    """Adam and AdamW with this learning rate, unless they say their own; SGD's does not depend on the model."""
    name = optimizer.chosen
    adam = optimizer.adam or optimizer.adam_w
    if adam is None or "learning_rate" in adam.model_fields_set:
        return optimizer
    return optimizer.model_copy(update={name: adam.model_copy(update={"learning_rate": rate})})


def _learning_rate(model: Model) -> float:
    if model.pretrained is None:
        return SCRATCH_RATE
    if model.causal_lm is not None:
        return LANGUAGE_MODEL_RATE if model.causal_lm.lora is None else LORA_RATE
    classifier = model.text_classifier or model.image_classifier
    assert classifier is not None, "no other is pretrained"
    return FROZEN_RATE if classifier.freeze_encoder else PRETRAINED_RATE
