"""`status.training`: what the training process says of itself, on a laptop and in a cluster."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from trainjob.api.numbers import Number
from trainjob.schema.base import StrictModel

Time = Annotated[AwareDatetime, Field(description="Time, RFC 3339.")]
LONGEST_TEXT = 4096
MOST_ENTRIES = 100
"""Of a map or list. What is longer is cut before it is written, and refused by the API server."""
LONGEST_KEY = 253
"""Of a map, likewise: the name of a metric or the path of a field."""

Stage = Literal["Preparing", "Starting", "Training", "Evaluating", "Finished"]


class CheckpointStatus(StrictModel):
    """One checkpoint in the run's storage."""

    uri: str = ""
    """Its folder; `trainjob predict` and `trainjob.Predictor.load` take it as it is."""
    step: int = 0
    """Optimizer steps taken."""
    metric: str | None = None
    """The metric that ranks checkpoints."""
    value: float | None = None
    """Its value, where the checkpoint was validated."""


class Failure(StrictModel):
    """Why training ended without a model."""

    rank: int | None = None
    """The worker that failed; none where it was the driver."""
    exception: str
    """Its type."""
    message: str = ""
    """What it said."""
    traceback: str = ""
    """The end of its traceback."""
    retryable: bool = True
    """Whether another attempt is worth making: not after a mistake in the TrainJob, nor once `spec.retries` is used
    up."""


class BestTrial(StrictModel):
    """The best trial so far."""

    number: int = 0
    """Its number, from 1."""
    value: float | None = None
    """The checkpoints' metric at its best."""
    parameters: dict[str, str] = {}
    """What was tuned, by the path of the field in the spec."""


class TuningStatus(StrictModel):
    """The trials of `spec.tuning`."""

    ended: str = ""
    """How many trials have ended, of how many: `5/8`."""
    total: int = 0
    """Trials in all."""
    done: int = 0
    """Trials that were trained to their end."""
    running: int = 0
    """Trials that are under way."""
    stopped: int = 0
    """Trials that the scheduler stopped early."""
    failed: int = 0
    """Trials that diverged, ran out of memory or failed otherwise."""
    best: BestTrial | None = None
    """The best trial so far."""


class Phase(StrictModel):
    """Work that takes long and is no training step."""

    name: str = ""
    """What is done, such as `reading`, `validation`, `test` or `trials`, or what is waited for."""
    done: int = 0
    """How many are done."""
    total: int | None = None
    """Of how many, where known."""
    unit: str = ""
    """Of what, such as `bytes` or `rows`; `s` where nothing but the seconds can be counted."""


class TrainingStatus(StrictModel):
    """A snapshot of the run; each one replaces the one before."""

    stage: Stage = "Preparing"
    """What the run is doing."""
    message: str = ""
    """A word on it, such as where the run continues from, or which metrics are not finite and therefore not listed."""
    epoch: int = 0
    """Current epoch, from 1; of a function, what it reports as `epoch`, or else the number of its reports."""
    epochs: int | None = None
    """Epochs in all, where known."""
    epochs_completed: int = 0
    """Epochs validated; of a function, its reports. `metrics` are of the last of them."""
    step: int = 0
    """Optimizer steps taken; of a function, its reports."""
    steps: int | None = None
    """Optimizer steps in all, where known."""
    percent: float | None = 0.0
    """How much of the whole run is done, validation and evaluation included, where known; 100 once it has
    finished."""
    eta: float | None = None
    """Seconds to go, where known: of the phase, while there is one, or else of training."""
    phase: Phase | None = None
    """What takes longer than a few seconds now, besides training steps."""
    workers: int | None = None
    """Workers that train now: of an elastic job, between `spec.workers.minimum` and `count`."""
    samples_per_second: float | None = None
    """Training rows a second over all workers, of late."""
    tokens_per_second: float | None = None
    """Of a language model: tokens a second that it learned from, over all workers, of late."""
    padding: float | None = None
    """Of texts: the share of padding in the training batches of late, 0 to 1."""
    loss: float | None = None
    """Training loss of late, over all workers."""
    learning_rate: float | None = None
    """Current learning rate."""
    metrics: dict[str, Number] = {}
    """Metrics of the last completed epoch."""
    latest_checkpoint: CheckpointStatus | None = None
    """The checkpoint that a retry continues from."""
    best_checkpoint: CheckpointStatus | None = None
    """The best checkpoint so far."""
    tuning: TuningStatus | None = None
    """The trials of `spec.tuning`."""
    evaluation: dict[str, float] = {}
    """Scores of the best checkpoint, once training has finished: `validation_…` and, with a test set, `test_…`."""
    failure: Failure | None = None
    """Why training ended without a model; of the last attempt, until the next one has something to tell."""
    updated_time: Time | None = None
    """When this was written."""
