"""`spec.training` and `spec.checkpoints`: how the model is trained and what is kept."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainjob.kinds import direction_of
from trainjob.schema.base import DependsOnModel, OneOf, StrictModel
from trainjob.schema.fields import PositiveInt
from trainjob.schema.uris import FolderURI

Fraction = Annotated[float, Field(ge=0, lt=1)]
LearningRate = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Adam(StrictModel):
    """Adam (Kingma and Ba, 2014)."""

    learning_rate: Annotated[LearningRate, DependsOnModel()] = 1e-3
    """Peak learning rate; by default 1e-4 for a pretrained encoder, 0.1 for the head of a frozen one, 2e-5 for a
    pretrained language model, and 1e-3 for a network that is trained from scratch."""
    betas: Annotated[list[Fraction], Field(min_length=2, max_length=2)] = [0.9, 0.999]
    """Decay of the running averages of the gradient and of its square."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the denominator."""
    weight_decay: NonNegative = 0.0
    """L2 penalty on matrices; biases and norms have none."""


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

    weight_decay: NonNegative = 0.01
    """Decoupled weight decay of matrices; biases and norms have none."""


class SGD(StrictModel):
    """Stochastic gradient descent."""

    learning_rate: LearningRate = 0.1
    """Peak learning rate."""
    momentum: Fraction = 0.0
    """Share of the last update that is kept."""
    nesterov: bool = False
    """Nesterov's momentum; needs `momentum`."""
    weight_decay: NonNegative = 0.0
    """L2 penalty on matrices; biases and norms have none."""

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> Self:
        if self.nesterov and not self.momentum:
            raise PydanticCustomError("nesterov", "nesterov needs momentum greater than 0")
        return self


class Optimizer(OneOf):
    """The optimizer: exactly one of these."""

    adam: Adam | None = None
    """Adam."""
    adam_w: Annotated[AdamW | None, Field(alias="adamW")] = None
    """Adam with decoupled weight decay."""
    sgd: SGD | None = None
    """Stochastic gradient descent."""


class ReduceOnPlateau(StrictModel):
    """After each validation: multiplies the learning rate by `factor` when the validation loss has stopped falling."""

    factor: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """What the learning rate is multiplied by."""
    patience: Annotated[int, Field(ge=0)] = 3
    """Validations without a better loss before that."""


class WarmUp(StrictModel):
    """After each step: the learning rate rises over the warm-up, then falls to zero at the last step."""

    warmup_fraction: Fraction = 0.1
    """Share of all steps in which the learning rate rises from zero."""


class Constant(StrictModel):
    """The learning rate stays as it is, once it is warmed up."""

    warmup_fraction: Fraction = 0.0
    """Share of all steps in which the learning rate rises from zero."""


class Scheduler(OneOf):
    """The learning-rate schedule: exactly one of these."""

    constant: Constant | None = None
    """Leave it as it is, after a warm-up if one is wanted."""

    reduce_on_plateau: ReduceOnPlateau | None = None
    """Lower it when the validation loss has stopped falling."""
    cosine: WarmUp | None = None
    """Warm-up, then half a cosine down to zero."""
    linear: WarmUp | None = None
    """Warm-up, then a straight line down to zero."""


class EarlyStopping(StrictModel):
    """Ends training when the checkpoints' metric has stopped getting better."""

    patience: PositiveInt = 3
    """Validations without a better value before training ends."""
    min_delta: NonNegative = 0.0
    """How much better a value must be to count."""


class Distillation(StrictModel):
    """The model learns what a larger one says to the rows, besides their labels (Hinton et al., 2015)."""

    teacher: FolderURI
    """The run, or the model's folder, of a classifier of the same kind with the same classes: a path (relative to this
    YAML), `s3://` or `gs://`."""
    temperature: Annotated[float, Field(gt=0)] = 2.0
    """What both models' logits are divided by: the higher, the more the less probable classes count."""
    weight: Annotated[float, Field(gt=0, le=1)] = 0.5
    """How much what the teacher says counts in the loss; the rest is the label's."""


class Training(StrictModel):
    """How the model is trained."""

    epochs: PositiveInt = 10
    """Passes over the training rows, at most."""
    max_steps: PositiveInt | None = None
    """Optimizer steps, at most. An epoch that ends by it is validated and saved as others are."""
    batch_size: Annotated[PositiveInt, DependsOnModel()] = 32
    """Rows of one step over all workers: each takes batchSize / workers.count. By default 32, or the next multiple of
    workers.count."""
    optimizer: Optimizer = Optimizer(adam_w=AdamW())
    """The optimizer."""
    scheduler: Annotated[Scheduler, DependsOnModel()] = Scheduler(constant=Constant())
    """The learning-rate schedule; by default `constant`; for a pretrained model, `linear` with a warm-up of a tenth
    of the steps."""
    gradient_clipping: Annotated[float, Field(gt=0)] | None = None
    """Largest L2 norm of all gradients together; larger ones are scaled down to it."""
    gradient_accumulation: PositiveInt = 1
    """Batches whose gradients are averaged into one optimizer step."""
    validate_every_steps: PositiveInt | None = None
    """Optimizer steps between validations inside an epoch, each of which saves a checkpoint that may be the best one;
    there is a validation after each epoch in any case."""
    early_stopping: EarlyStopping | None = None
    """Ends training when it no longer helps."""
    distillation: Distillation | None = None
    """Trains on what a larger model, the teacher, says to the rows, besides their labels."""
    precision: Literal["auto", "bf16", "fp16", "float32"] = "auto"
    """bf16: forward pass in bfloat16, weights in float32. fp16: the same in float16, with losses scaled so that small
    gradients are not lost. auto: bf16 where the hardware makes it faster, fp16 on GPUs without it, float32
    otherwise. But for float32, GPUs multiply what stays in float32 as TF32. CPUs without units for it emulate bf16, and
    most of them fp16, many times as slowly as float32."""
    sharding: Literal["none", "full", "auto"] = "none"
    """full: each worker keeps a part of the weights, their gradients and the optimizer's state, for models that are too
    large for one GPU (PyTorch's FSDP2). none: each worker keeps all of them, which is faster where they fit. auto: full
    where they would take more than half of a GPU's memory."""
    cpu_offload: bool = False
    """Keeps what is sharded in the memory of the workers' machines and brings to the GPU what it is computing with:
    slower, for what does not fit otherwise."""
    activation_checkpointing: bool = False
    """Keeps only what each layer begins with for the backward pass, which computes the rest again: less memory, about
    a third more time."""
    compile: bool = False
    """Has PyTorch compile the training steps (`torch.compile`), which takes minutes at the start and needs a C++
    compiler: faster on GPUs for most models. A run that is continued may then differ in the last digits."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seeds the split, the initial weights, dropout and the order of rows."""


class Checkpoints(StrictModel):
    """What is kept while training."""

    metric: Annotated[str, Field(min_length=1)] = "validation_loss"
    """The reported metric that tells the best checkpoint."""
    mode: Literal["min", "max"] | None = None
    """Whether less is better or more; by default min for a metric that ends in `loss`, `error` or
    `perplexity`, max otherwise."""
    keep: PositiveInt = 1
    """How many of the best checkpoints stay, besides the latest."""
    every_steps: PositiveInt | None = None
    """Optimizer steps between checkpoints inside an epoch; there is one after each epoch in any case."""

    @property
    def lower_is_better(self) -> bool:
        return (self.mode or direction_of(self.metric)) == "min"
