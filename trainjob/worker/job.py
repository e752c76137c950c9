"""What the driver tells the workers. Light to import: neither torch nor Ray."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted
from trainjob.launch.quick_imports import quick_imports
from trainjob.progress.channel import Address, OnStatus
from trainjob.storage import Folder
from trainjob.worker.log_capture import LogTarget, captured

if TYPE_CHECKING:
    from trainjob.worker.outcome import Outcome, Stopped


@dataclass(frozen=True)
class Task:
    """The same for every worker."""

    spec: TrainJobSpec
    run: Folder
    attempt: int
    """Which start of the driver this is, from 1."""
    fitted: Fitted
    driver: Address | OnStatus
    """Where rank 0 tells how training goes; the function where it is in this process."""
    threads: int
    """CPU threads of each worker."""
    examples: Callable[[], dict[str, Examples]] | None
    """Gives the rows in memory; None where they come from Ray Data."""
    streamed: tuple[str, ...] = ()
    """The sets that Ray Data splits between the workers, anew in every epoch, as they are too large to keep."""
    on_ray: bool = False
    """Whether the workers are a Ray cluster's."""
    trains: bool = True
    """Otherwise the best checkpoint that is there is evaluated."""
    evaluates: bool = True
    """Scores the model on the test set, too; otherwise there is no outcome."""

    @property
    def in_ray_train(self) -> bool:
        """Whether Ray Train has started the workers; a trial's only worker may be a process of Ray Tune's."""
        return isinstance(self.driver, Address)


def train(task: Task) -> "Outcome | Stopped | None":
    """What every worker runs; rank 0 returns the outcome, or that training was told to stop."""
    import ray.train

    from trainjob.worker.distributed import rank

    with captured(LogTarget(task.run, task.attempt), rank()):
        if task.examples is None:
            ray.train.get_dataset_shard("train")  # its coordinator starts while the libraries load
        with quick_imports():
            from trainjob.worker.train import work

        return work(task)
