"""The rows that one rank trains on, and the rows that it scores."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from trainjob.data import Examples, Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import (
    InMemoryBatches,
    Shard,
    StreamedBatches,
    TrainingBatches,
    memory_windows,
    read_windows,
    scoring_batches,
)
from trainjob.data.batches.prepare import read_tables
from trainjob.worker.job import WorkerJob
from trainjob.worker.shared_rows import read_once_per_node

if TYPE_CHECKING:
    from ray.data import DataIterator


@dataclass(frozen=True)
class RankData:
    """The batches of one rank."""

    training: TrainingBatches
    batches_to_score: Callable[[str], Iterator[Batch]]
    """Returns this rank's batches of a set, by the set's name."""
    training_rows: int
    """Rows of an epoch, over all ranks."""
    batches_per_epoch: int
    micro_batches: int = 1
    """The number of micro-batches for each training batch of this rank."""


def rows_in_memory(examples: Mapping[str, Examples], preprocessor: Preprocessor, shard: Shard) -> RankData:
    """The batches of rows that are in memory, by the names of their sets."""

    def batches_to_score(name: str) -> Iterator[Batch]:
        return scoring_batches(memory_windows(examples[name], shard.window), preprocessor, shard)

    training, rows = InMemoryBatches(examples["train"], preprocessor, shard), len(examples["train"])
    return RankData(training, batches_to_score, rows, shard.batches(rows))


def load_rank_data(job: WorkerJob, shard: Shard) -> RankData:
    """Waits for the training rows. Every rank must call this."""
    preprocessor = job.fitted.preprocessor
    examples_of = _in_memory_sets(job)
    to_score = shard.for_scoring(job.spec.workers.count)

    def batches_to_score(name: str) -> Iterator[Batch]:
        if name not in job.streamed:
            return scoring_batches(memory_windows(examples_of(name), to_score.window), preprocessor, to_score)
        # Ray Data has divided the rows among the ranks already
        whole = replace(to_score, rank=0, world_size=1, batch_size=to_score.rows_per_rank)
        return scoring_batches(read_windows(_dataset_shard(name), whole.window), preprocessor, whole)

    training: TrainingBatches
    if "train" in job.streamed:
        row_bytes = job.fitted.training_row_bytes(job.spec)
        training = StreamedBatches(_dataset_shard("train"), preprocessor, shard, row_bytes)
        rows = job.fitted.training_rows // shard.world_size * shard.world_size
    else:
        examples = examples_of("train")
        training, rows = InMemoryBatches(examples, preprocessor, shard), len(examples)
    micro_batches = 1 if job.spec.model.facts.compares_rows else shard.micro_batches(job.spec.workers.count)
    return RankData(training, batches_to_score, rows, shard.batches(rows), micro_batches)


def _in_memory_sets(job: WorkerJob) -> Callable[[str], Examples]:
    """Returns a function that gives the rows of a set that is not streamed. If Ray Data prepares them, each node has
    one copy."""
    if job.examples is not None:
        return job.examples().__getitem__
    return cache(lambda name: read_once_per_node(lambda: read_tables(_dataset_shard(name))))


def _dataset_shard(name: str) -> "DataIterator":
    import ray.train

    shard = ray.train.get_dataset_shard(name)
    assert shard is not None
    return shard
