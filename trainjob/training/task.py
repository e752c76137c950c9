"""What the driver tells the workers."""

from collections.abc import Callable
from dataclasses import dataclass

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted
from trainjob.storage import Folder
from trainjob.training.channel import Address


@dataclass(frozen=True)
class Task:
    """The same for every worker."""

    spec: TrainJobSpec
    run: Folder
    fitted: Fitted
    driver: Address
    threads: int
    """CPU threads of each worker."""
    examples: Callable[[], dict[str, Examples]] | None
    """Gives the rows in memory; None where they come from Ray Data."""
