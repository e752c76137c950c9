"""`summary.json`: how a finished run went."""

from typing import Literal

from pydantic import AwareDatetime

from trainjob.api.data_profile import DataProfile
from trainjob.api.numbers import ReportedNumber
from trainjob.runs.attempts import read_attempts
from trainjob.runs.files import SUMMARY
from trainjob.runs.refusals import refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder


class BestCheckpoint(StrictModel):
    """The checkpoint whose model the run keeps."""

    step: int
    """Optimizer steps taken."""
    epoch: int
    """Epoch that it ends, from 1."""
    metric: str
    """The metric that ranks checkpoints."""
    value: float | None = None
    """Its value; None if it was not finite."""


class TrainingWorkers(StrictModel):
    """The processes that trained."""

    count: int
    """Worker processes."""
    device: str
    """The device of each worker: `cpu` or the GPU's name."""
    threads: int
    """PyTorch threads of each worker."""


class Hardware(StrictModel):
    """The machine of the driver."""

    cpu: str
    """The processor's name."""
    cores: int
    """CPU cores that the run could use."""
    memory_gib: float
    """Main memory in GiB."""
    gpus: list[str] = []
    """Name of each GPU."""


class Summary(StrictModel):
    """The summary of a finished run."""

    outcome: Literal["Succeeded"] = "Succeeded"
    """The file is written by runs that came to their end."""
    name: str
    """The TrainJob's name."""
    started: AwareDatetime
    """When the first attempt started."""
    finished: AwareDatetime
    """When the last attempt ended."""
    attempts: int = 1
    """Number of starts of the run."""
    parameters: int | None = None
    """Parameters of the model; none for a function."""
    trained_parameters: int | None = None
    """Trained parameters among these: those of an adapter, or of the head on a frozen encoder."""
    rows: dict[str, int] = {}
    """Rows of `train`, `validation` and, if there is one, `test`."""
    classes: int | None = None
    """Number of classes; none for a model that is not a classifier."""
    data: DataProfile | None = None
    """Counts of the rows: duplicates, overlap of the sets, class sizes; None for a function."""
    workers: TrainingWorkers
    """The processes that trained."""
    precision: str | None = None
    """bfloat16 or float32, as used; none for a function."""
    best_checkpoint: BestCheckpoint | None = None
    """The checkpoint whose model the run keeps."""
    metrics: dict[str, ReportedNumber] = {}
    """The numbers that a function reported last, with "NaN", "Infinity" and "-Infinity" as texts; empty for other
    models, whose scores are in evaluation.json."""
    code: str | None = None
    """Version of a function's code: the commit, or the archive's SHA-256 digest; none without `spec.code`."""
    checkpoint: str | None = None
    """The latest checkpoint of a function; none for a classifier."""
    stopped_early: bool = False
    """Whether early stopping ended training before the last epoch."""
    seconds: dict[str, float] = {}
    """Seconds of each stage, in the order of the stages, which do not overlap: start, data, training, validation,
    checkpoints, evaluation. Those of `start` and `data` are the last attempt's; the others are the sum over all
    attempts, each up to the checkpoint (of a function, the report) that the next one continued from."""
    samples_per_second: float | None = None
    """Training rows a second over all workers."""
    versions: dict[str, str] = {}
    """Version of Python and of each package that shapes the result."""
    hardware: Hardware
    """The machine of the driver."""

    @property
    def elapsed(self) -> float:
        """Seconds that the run took. If there were several attempts, the time between them does not count."""
        if self.attempts > 1 and self.seconds:
            return sum(self.seconds.values())
        return (self.finished - self.started).total_seconds()


def read_summary(run: Folder) -> Summary | None:
    """Reads the summary; returns None if the run has not finished.

    A summary of an earlier attempt is ignored: a replaced driver wrote it late. Raises UserError for a damaged file."""
    if not run.exists(SUMMARY):
        return None
    with refuse_damaged(run, SUMMARY):
        summary = Summary.model_validate_json(run.read(SUMMARY))
    attempts = read_attempts(run)
    if attempts is None:
        return summary
    begun_anew = summary.started < attempts.started  # by --fresh
    return None if begun_anew or summary.attempts < attempts.count else summary
