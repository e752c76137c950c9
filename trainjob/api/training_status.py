"""`status.training`: the progress reported by the training process, on a laptop and in a cluster."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from trainjob.api.numbers import ReportedNumber
from trainjob.schema.base import StrictModel

Time = Annotated[AwareDatetime, Field(description="Time, RFC 3339.")]
MAX_TEXT_CHARACTERS = 4096
MAX_ENTRIES = 100
"""Maximum items of a map or list. Longer ones are truncated before writing; the API server would reject them."""
MAX_KEY_CHARACTERS = 253
"""Maximum length of a map's key: the name of a metric or the path of a field."""

Stage = Literal["Preparing", "Starting", "Training", "Evaluating", "Finished"]


class CheckpointStatus(StrictModel):
    """One checkpoint in the run's storage."""

    uri: str = ""
    """Its folder, for `trainjob predict` and `trainjob.Predictor.load`."""
    step: int = 0
    """Optimizer steps taken."""
    metric: str | None = None
    """The metric for ranking checkpoints."""
    value: float | None = None
    """The metric's value, if the checkpoint was validated."""


class Failure(StrictModel):
    """The reason why training ended without a model."""

    rank: int | None = None
    """Rank of the failed worker; none if the driver failed."""
    exception: str
    """The exception's type."""
    message: str = ""
    """The exception's message."""
    traceback: str = ""
    """The end of the traceback."""
    retryable: bool = True
    """Whether another attempt may succeed: false after a mistake in the TrainJob, and once `spec.retries` is used
    up."""


class BestTrial(StrictModel):
    """The best trial so far."""

    number: int = 0
    """The trial's number, from 1."""
    value: float | None = None
    """Its best value of the checkpoints' metric."""
    parameters: dict[str, str] = {}
    """Its hyperparameters, by the path of the field in the spec."""


class TuningStatus(StrictModel):
    """The trials of `spec.tuning`."""

    ended: str = ""
    """The number of ended trials and of all trials, such as `5/8`."""
    total: int = 0
    """Total number of trials."""
    done: int = 0
    """Trials that completed training."""
    running: int = 0
    """Running trials."""
    stopped: int = 0
    """Trials stopped early by the scheduler."""
    failed: int = 0
    """Trials that diverged, ran out of memory, or failed otherwise."""
    best: BestTrial | None = None
    """The best trial so far."""


class TrainingPhase(StrictModel):
    """Long-running work other than training steps."""

    name: str = ""
    """The kind of work, such as `reading`, `validation`, `test` or `trials`, or what the run is waiting for."""
    done: int = 0
    """Completed units."""
    total: int | None = None
    """Total units, if known."""
    unit: str = ""
    """The unit, such as `bytes` or `rows`; `s` if only elapsed seconds can be counted."""


class TrackingStatus(StrictModel):
    """The run in one experiment tracker."""

    name: str = ""
    """The tracker: `mlflow`, `trackio`, `wandb`, or the name of a custom tracker."""
    url: str = ""
    """Address of the run's page."""
    message: str = ""
    """Why the tracker is behind; empty if it is not."""


class TrainingStatus(StrictModel):
    """A snapshot of the run; each replaces the previous one."""

    stage: Stage = "Preparing"
    """The run's current stage."""
    message: str = ""
    """Details, such as the checkpoint that the run resumes from, or metrics that are not listed because they are not
    finite."""
    epoch: int = 0
    """Current epoch, from 1; for a function, the reported `epoch`, or else the number of its reports."""
    epochs: int | None = None
    """Total epochs, if known."""
    epochs_completed: int = 0
    """Validated epochs; for a function, the number of its reports. `metrics` belong to the last one."""
    step: int = 0
    """Optimizer steps taken; for a function, the number of its reports."""
    steps: int | None = None
    """Total optimizer steps, if known."""
    percent: float | None = 0.0
    """Progress of the whole run in percent, including validation and evaluation, if known; 100 at the end."""
    eta: float | None = None
    """Remaining seconds, if known: of the current phase, or else of training."""
    phase: TrainingPhase | None = None
    """Current work, other than training steps, that takes longer than a few seconds."""
    workers: int | None = None
    """Current number of workers; for an elastic job, between `spec.workers.minimum` and `count`."""
    samples_per_second: float | None = None
    """Recent training rows per second over all workers."""
    tokens_per_second: float | None = None
    """For a language model: recent learned tokens per second over all workers."""
    padding: float | None = None
    """For texts: the fraction of padding in recent training batches, 0 to 1."""
    loss: float | None = None
    """Recent training loss over all workers."""
    learning_rate: float | None = None
    """Current learning rate."""
    metrics: dict[str, ReportedNumber] = {}
    """Metrics of the last completed epoch."""
    is_best: bool = False
    """Whether these metrics are the best so far, by `checkpoints.metric`."""
    latest_checkpoint: CheckpointStatus | None = None
    """The latest checkpoint that was reported. When the pods are deleted, such as at `spec.cancel`, the workers save
    another one, which is no longer reported."""
    best_checkpoint: CheckpointStatus | None = None
    """The best checkpoint so far."""
    tuning: TuningStatus | None = None
    """The trials of `spec.tuning`."""
    tracking: Annotated[list[TrackingStatus], Field(max_length=8)] = []
    """The run in the trackers of `spec.tracking`."""
    evaluation: dict[str, float] = {}
    """Scores of the best checkpoint after training: `validation_…` and, with a test set, `test_…`."""
    code: str | None = None
    """Version of a function's code: the commit, or the archive's SHA-256 digest."""
    failure: Failure | None = None
    """The reason why training ended without a model, for the last attempt, until the next one reports."""
    updated_time: Time | None = None
    """The time of this report."""
