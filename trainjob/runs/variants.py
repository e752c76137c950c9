"""`variants.json`: measurements of a run's model and its smaller variants."""

from typing import Literal

from trainjob.evaluation.paired import Estimate
from trainjob.runs.files import VARIANTS_TABLE
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder

ORIGINAL = "original"
"""The name of the run's own model in the list of variants."""


class Variant(StrictModel):
    """The measurements of one model."""

    name: str
    """Name of its folder in `variants`, or `original`."""
    size: int
    """Bytes of its weights."""
    latency_p50: float
    """Seconds that one row takes on one thread, tokenizing included: the median."""
    latency_p99: float
    """The 99th percentile of the time for one row."""
    rows_per_second: float
    """Rows predicted per second, in batches and on all threads."""
    memory: int
    """Most bytes that a process which loads it and predicts rows one by one has in memory."""
    accuracy: Estimate
    """Fraction of rows for which the right class is predicted."""
    f1: Estimate
    """F1, the mean over classes."""
    agreement: float
    """Fraction of rows for which it predicts the same class as the original."""


class Variants(StrictModel):
    """Models measured one after the other on one machine."""

    set_name: Literal["test", "validation"]
    """The set of the rows; validation if there is no test set."""
    rows: int
    """Rows that were predicted."""
    of_rows: int
    """Rows of the set. If it has more rows than were predicted, those are drawn at random."""
    batch_size: int
    """Rows of a batch."""
    threads: int
    """Threads that predict batches."""
    cpu: str
    """The processor's name."""
    variants: list[Variant]
    """The original first."""


def read_variants(run: Folder) -> Variants | None:
    """Returns None if there are no variants. Raises ValueError for a damaged file."""
    return Variants.model_validate_json(run.read(VARIANTS_TABLE)) if run.exists(VARIANTS_TABLE) else None


def write_variants(run: Folder, variants: Variants) -> None:
    run.write(VARIANTS_TABLE, variants.model_dump_json(by_alias=True, indent=1).encode())
