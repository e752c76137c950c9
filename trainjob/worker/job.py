"""The job that the driver sends to the workers."""

from collections.abc import Callable
from dataclasses import dataclass

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted
from trainjob.progress.channel import Address
from trainjob.progress.snapshots import OnStatus
from trainjob.storage import Folder


@dataclass(frozen=True)
class WorkerJob:
    """The work of the workers; the same for every worker."""

    spec: TrainJobSpec
    run: Folder
    attempt: int
    """The number of this start of the driver, from 1."""
    fitted: Fitted
    driver: Address | OnStatus
    """The address to which rank 0 reports progress; a function if the caller is in this process."""
    threads: int
    """CPU threads of each worker."""
    examples: Callable[[], dict[str, Examples]] | None
    """Returns the rows in memory; None if they come from Ray Data."""
    streamed: tuple[str, ...] = ()
    """The sets that are too large to keep: Ray Data divides them among the workers, again in every epoch."""
    on_ray: bool = False
    """Whether the workers are actors of a Ray cluster."""
    trains: bool = True
    """Whether to train; otherwise the best existing checkpoint is evaluated."""
    evaluates: bool = True
    """Whether to evaluate the best checkpoint; otherwise there is no outcome."""
