"""`spec.training` and `spec.checkpoints`: training hyperparameters and checkpoint retention."""

from typing import Annotated, Literal

from pydantic import Field

from trainjob.kinds import direction_of
from trainjob.schema.base import DependsOnSpec, OneOf, StrictModel
from trainjob.schema.expressions import setting
from trainjob.schema.fields import PositiveInt
from trainjob.schema.rules import FieldRule, RuledModel
from trainjob.schema.uris import FolderURI

Fraction = Annotated[float, Field(ge=0, lt=1)]
LearningRate = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Adam(StrictModel):
    """Adam (Kingma and Ba, 2014)."""

    learning_rate: Annotated[LearningRate, DependsOnSpec()] = 1e-3
    """Peak learning rate; by default 1e-4 for a pretrained encoder, 0.1 for the head of a frozen one, 2e-5 for a
    pretrained language model, and 1e-3 for a network trained from scratch."""
    betas: Annotated[list[Fraction], Field(min_length=2, max_length=2)] = [0.9, 0.999]
    """Decay rates of the running averages of the gradient and of its square."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the denominator."""
    weight_decay: NonNegative = 0.0
    """L2 penalty on matrices; biases and norms are excluded."""


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

    weight_decay: NonNegative = 0.01
    """Decoupled weight decay of matrices; biases and norms are excluded."""


class SGD(RuledModel):
    """Stochastic gradient descent."""

    learning_rate: LearningRate = 0.1
    """Peak learning rate."""
    momentum: Fraction = 0.0
    """Momentum: the fraction of the previous update to keep."""
    nesterov: bool = False
    """Nesterov momentum; needs `momentum`."""
    weight_decay: NonNegative = 0.0
    """L2 penalty on matrices; biases and norms are excluded."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        has_momentum = setting(cls, "momentum").is_positive()
        return (FieldRule("nesterov", "needs momentum greater than 0", ~setting(cls, "nesterov") | has_momentum),)


class Optimizer(OneOf):
    """The optimizer: exactly one of these."""

    adam: Adam | None = None
    """Adam."""
    adam_w: Annotated[AdamW | None, Field(alias="adamW")] = None
    """Adam with decoupled weight decay."""
    sgd: SGD | None = None
    """Stochastic gradient descent."""


class ReduceOnPlateau(StrictModel):
    """After each validation: multiplies the learning rate by `factor` if the validation loss has stopped falling."""

    factor: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Factor for the learning rate."""
    patience: Annotated[int, Field(ge=0)] = 3
    """Validations without a better loss before the reduction."""


class WarmUp(StrictModel):
    """After each step: the learning rate rises over the warm-up, then falls to zero at the last step."""

    warmup_fraction: Fraction = 0.1
    """Fraction of all steps for warm-up from zero."""


class Constant(StrictModel):
    """After the warm-up, the learning rate is constant."""

    warmup_fraction: Fraction = 0.0
    """Fraction of all steps for warm-up from zero."""


class Scheduler(OneOf):
    """The learning-rate schedule: exactly one of these."""

    constant: Constant | None = None
    """Constant, after an optional warm-up."""

    reduce_on_plateau: ReduceOnPlateau | None = None
    """Lower the learning rate when the validation loss has stopped falling."""
    cosine: WarmUp | None = None
    """Warm-up, then cosine decay to zero."""
    linear: WarmUp | None = None
    """Warm-up, then linear decay to zero."""


class EarlyStopping(StrictModel):
    """Ends training when the checkpoints' metric has stopped improving."""

    patience: PositiveInt = 3
    """Validations without improvement before training ends."""
    min_delta: NonNegative = 0.0
    """Smallest change that counts as an improvement."""


class Distillation(StrictModel):
    """The model learns a larger model's outputs as well as the labels (Hinton et al., 2015)."""

    teacher: FolderURI
    """Run or model folder of a classifier of the same kind with the same classes: a path (relative to this YAML),
    `s3://` or `gs://`."""
    temperature: Annotated[float, Field(gt=0)] = 2.0
    """Divisor of both models' logits: a higher temperature gives less probable classes more influence."""
    weight: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Weight of the teacher's outputs in the loss; the rest is the label's."""


class Training(StrictModel):
    """Training hyperparameters."""

    epochs: PositiveInt = 10
    """Maximum number of passes over the training rows."""
    max_steps: PositiveInt | None = None
    """Maximum number of optimizer steps. An epoch that ends at this limit is validated and saved like any other."""
    batch_size: Annotated[PositiveInt, DependsOnSpec()] = 32
    """Rows per batch over all workers; each takes batchSize / workers.count. By default 32, or the next multiple of
    workers.count."""
    optimizer: Optimizer = Optimizer(adam_w=AdamW())
    """The optimizer."""
    scheduler: Annotated[Scheduler, DependsOnSpec()] = Scheduler(constant=Constant())
    """The learning-rate schedule; by default `constant`, and for a pretrained model `linear` with a warm-up of a tenth
    of the steps."""
    gradient_clipping: Annotated[float, Field(gt=0)] | None = None
    """Maximum L2 norm of all gradients; larger ones are scaled down to it."""
    gradient_accumulation: PositiveInt = 1
    """Number of batches to average the gradients over for one optimizer step."""
    validate_every_steps: PositiveInt | None = None
    """Optimizer steps between validations within an epoch, each with a checkpoint that may be the best one. The model
    is also validated after each epoch."""
    early_stopping: EarlyStopping | None = None
    """Ends training when the checkpoints' metric has stopped improving."""
    distillation: Distillation | None = None
    """Trains on the outputs of a larger model, the teacher, as well as on the labels."""
    precision: Literal["auto", "bf16", "fp16", "float32"] = "auto"
    """bf16: forward pass in bfloat16, weights in float32. fp16: the same in float16, with loss scaling to preserve
    small gradients. auto: bf16 if the hardware accelerates it, fp16 on GPUs without bf16, float32 otherwise. With any
    precision but float32, GPUs use TF32 for the remaining float32 matrix products. CPUs without bf16 units emulate it,
    and most CPUs emulate fp16, many times slower than float32."""
    sharding: Literal["none", "full", "auto"] = "none"
    """full: each worker holds one shard of the weights, gradients and optimizer state, for models that are too large
    for one GPU (PyTorch's FSDP2). none: each worker holds all of them, which is faster if they fit. auto: full if they
    would take more than half of a GPU's memory."""
    cpu_offload: bool = False
    """Keeps shards in host memory and copies them to the GPU when needed: slower, for models that do not fit
    otherwise."""
    activation_checkpointing: bool = False
    """Keeps only each layer's input for the backward pass, which recomputes the rest: less memory, about a third more
    time."""
    compile: bool = False
    """Compiles the training steps with `torch.compile`: faster on GPUs for most models, but takes minutes at the start
    and needs a C++ compiler. A resumed run may then differ in the last digits."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the split, the initial weights, dropout and the order of rows."""


class Checkpoints(StrictModel):
    """Checkpoint selection and retention."""

    metric: Annotated[str, Field(min_length=1)] = "validation_loss"
    """The reported metric that selects the best checkpoint."""
    mode: Literal["min", "max"] | None = None
    """Whether the metric is minimized or maximized; by default min for a metric that ends in `loss`, `error` or
    `perplexity`, max otherwise."""
    keep: PositiveInt = 1
    """How many of the best checkpoints to keep in addition to the latest."""
    every_steps: PositiveInt | None = None
    """Optimizer steps between checkpoints within an epoch; there is also one after each epoch."""

    @property
    def lower_is_better(self) -> bool:
        return (self.mode or direction_of(self.metric)) == "min"

    def improves(self, value: float, best: float | None, min_delta: float = 0.0) -> bool:
        """Whether a value of the metric is better than the best so far, by more than `min_delta`."""
        if best is None:
            return True
        return (best - value if self.lower_is_better else value - best) > min_delta
