"""Batches for training and scoring, from Ray Data or from memory, in an order that depends only on the seed.

Texts of similar length share a batch, so little of it is padding: rows are shuffled, taken in windows, sorted by length
within the window and cut into batches, whose order is shuffled again. At each step, the batches of all ranks have
similar lengths, so no rank waits for another. Rows in memory are cut into batches of all ranks together, whatever the
number of ranks. Streamed rows are cut by each rank for itself, and every rank shuffles its batches in the same order.
Rows that a target compares with others of their stratum are shuffled in small groups; they are never streamed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from trainjob.data import Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.examples import Examples, batches_by_length
from trainjob.data.batches.groups import in_groups, longest_of_groups
from trainjob.data.batches.prepare import user_errors
from trainjob.data.prefetch import prefetched

if TYPE_CHECKING:
    from ray.data import DataIterator

WINDOW_ROWS = 1024
"""Rows of one rank that are sorted by length together when streamed from Ray Data."""
WINDOW_BATCHES = 64
"""Batches whose rows are sorted together when all rows are in memory."""
SHUFFLE_BUFFER_BYTES = 256 * 2**20


class TrainingBatches(Protocol):
    """The training batches of one rank. In each epoch, all ranks get the same number of batches: their shards of the
    same global batches."""

    def epoch(self, epoch: int) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class Shard:
    """The shard of a dataset that one rank gets."""

    rank: int
    world_size: int
    batch_size: int
    """Rows of one batch over all ranks."""
    seed: int

    @property
    def rows_per_rank(self) -> int:
        """The most rows of a batch that one rank gets."""
        return ceil(self.batch_size / self.world_size)

    @property
    def window(self) -> int:
        """Rows of one rank that are sorted by length together: whole batches."""
        return self.rows_per_rank * max(1, WINDOW_ROWS // self.rows_per_rank)

    def micro_batches(self, ranks: int) -> int:
        """The number of micro-batches into which a rank divides its rows of a batch, so that none has more rows than
        with `ranks` ranks."""
        return ceil(self.rows_per_rank / ceil(self.batch_size / ranks))

    def for_scoring(self, ranks: int) -> "Shard":
        """The shard of a set to score: batches have no more rows for a rank than training batches with `ranks`
        ranks."""
        return replace(self, batch_size=ceil(self.batch_size / ranks) * self.world_size)

    def batches(self, total: int) -> int:
        """The number of batches in an epoch of `total` rows."""
        return ceil(total / self.batch_size)


def shuffled_batches(lengths: np.ndarray, batch_size: int, seed: list[int]) -> list[np.ndarray]:
    batches = batches_by_length(lengths, batch_size)
    np.random.default_rng(seed).shuffle(batches)
    return batches


def collate(preprocessor: Preprocessor, examples: Examples) -> Batch:
    arrays = preprocessor.input.batch(examples)
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    labels = torch.from_numpy(np.ascontiguousarray(preprocessor.target.labels(examples, arrays)))
    teacher = torch.from_numpy(np.ascontiguousarray(examples.teacher)) if examples.teacher is not None else None
    batch = Batch(inputs, labels, teacher=teacher)
    return replace(batch, padding=max(batch.token_slots - int(examples.lengths.sum()), 0))


def _collated(preprocessor: Preprocessor, item: tuple[Examples, bool]) -> Batch:
    examples, is_real = item
    batch = collate(preprocessor, examples)
    return batch if is_real else replace(batch, is_real=False, padding=0)


@dataclass(frozen=True)
class StreamedBatches:
    """Training batches streamed in every epoch from a Ray Data shard and shuffled in a buffer. All ranks get the same
    number of rows; the remainder of an uneven division is left out."""

    data: "DataIterator"
    preprocessor: Preprocessor
    shard: Shard
    row_bytes: int
    """Memory of one row."""

    def epoch(self, epoch: int) -> Iterator[Batch]:
        windows = read_windows(
            self.data,
            self.shard.window,
            local_shuffle_buffer_size=max(SHUFFLE_BUFFER_BYTES // self.row_bytes, self.shard.window),
            local_shuffle_seed=int(np.random.default_rng([self.shard.seed, epoch, self.shard.rank]).integers(2**31)),
        )
        for number, window in enumerate(windows):
            for indices in shuffled_batches(window.lengths, self.shard.rows_per_rank, [self.shard.seed, epoch, number]):
                yield collate(self.preprocessor, window.take(indices))


def read_windows(
    data: "DataIterator",
    rows: int,
    local_shuffle_buffer_size: int | None = None,
    local_shuffle_seed: int | None = None,
) -> Iterator[Examples]:
    """The rows of `data` in windows of `rows`."""
    from ray.data.collate_fn import ArrowBatchCollateFn

    class ToTensors(ArrowBatchCollateFn):
        def __call__(self, batch: pa.Table) -> dict[str, torch.Tensor]:
            examples = Examples.from_table(batch)
            arrays = ((field.name, getattr(examples, field.name)) for field in fields(examples))
            return {name: torch.from_numpy(array) for name, array in arrays if array is not None}

    batches = data.iter_torch_batches(
        batch_size=rows,
        collate_fn=ToTensors(),
        device="cpu",
        local_shuffle_buffer_size=local_shuffle_buffer_size,
        local_shuffle_seed=local_shuffle_seed,
    )
    with user_errors():
        for batch in batches:
            yield Examples(**{name: tensor.numpy() for name, tensor in batch.items()})


class _ExamplesDataset(Dataset[tuple[Examples, bool]]):
    """Examples as a map-style dataset. An item is a whole batch, and whether it is real: a rank without rows gets a
    dummy batch."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: np.ndarray) -> tuple[Examples, bool]:
        return self.examples.take(index if len(index) else np.zeros(1, np.int64)), len(index) > 0


class BucketSampler(Sampler[np.ndarray]):
    """The row indices of one rank in each batch of one epoch; the last batch may have none for it.

    The batches depend only on the seed and their size, so an epoch that begins and ends with different world sizes
    contains each row once. With `least` above 1, rows of a stratum come in groups of this many or a few more, and are
    sorted by the longest of their group. A group at the end of a batch may be divided.
    """

    def __init__(self, lengths: np.ndarray, shard: Shard, strata: np.ndarray | None = None, least: int = 1) -> None:
        self.lengths = lengths
        self.shard = shard
        self.strata = strata
        self.least = least
        self.epoch = 0

    def __len__(self) -> int:
        return self.shard.batches(len(self.lengths))

    def __iter__(self) -> Iterator[np.ndarray]:
        shard = self.shard
        order, lengths = self._shuffled()
        together = shard.batch_size
        window_rows = together * WINDOW_BATCHES
        whole = len(order) - len(order) % together
        for number, start in enumerate(range(0, whole, window_rows)):
            window = slice(start, min(start + window_rows, whole))
            for indices in shuffled_batches(lengths[window], together, [shard.seed, self.epoch, number]):
                yield order[window][indices[shard.rank :: shard.world_size]]
        if whole < len(order):
            yield order[whole:][shard.rank :: shard.world_size]

    def _shuffled(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows, and the length by which each is sorted, both int64 [n]."""
        random = np.random.default_rng([self.shard.seed, self.epoch])
        order = random.permutation(len(self.lengths))
        if self.strata is None:
            return order, self.lengths[order]
        order, groups = in_groups(order, self.strata, self.least, random)
        return order, longest_of_groups(self.lengths[order], groups)


class InMemoryBatches:
    """Training batches from a PyTorch DataLoader over all rows in memory: every rank shuffles them alike and takes its
    share."""

    def __init__(self, examples: Examples, preprocessor: Preprocessor, shard: Shard) -> None:
        target = preprocessor.target
        least = target.least_together
        strata = target.strata(examples.labels, len(examples)) if least > 1 else None
        self.sampler = BucketSampler(examples.lengths, shard, strata, least)
        self.loader = DataLoader(
            _ExamplesDataset(examples),
            batch_size=None,  # the sampler gives the rows of a whole batch
            sampler=self.sampler,
            collate_fn=cast("Any", partial(_collated, preprocessor)),  # typed for lists of items only
            generator=torch.Generator().manual_seed(shard.seed),
        )

    def epoch(self, epoch: int) -> Iterator[Batch]:
        self.sampler.epoch = epoch
        yield from cast("Iterable[Batch]", self.loader)


def ahead(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """Prepares the next batches in pinned memory while a GPU computes. A CPU would have to do both, so it gets the
    batches as they come."""
    if device.type != "cuda":
        return batches
    return prefetched((batch.without_full_mask().pinned() for batch in batches), partial(torch.cuda.set_device, device))


def memory_windows(examples: Examples, rows: int) -> Iterator[Examples]:
    for start in range(0, len(examples), rows):
        yield examples.take(np.arange(start, min(start + rows, len(examples))))


def scoring_batches(windows: Iterable[Examples], preprocessor: Preprocessor, shard: Shard) -> Iterator[Batch]:
    """This rank's batches of a set that every rank has completely: each row is in exactly one batch of one rank."""
    number = first_row = 0
    for window in windows:
        for indices in batches_by_length(window.lengths, shard.rows_per_rank):
            if number % shard.world_size == shard.rank:
                rows = first_row + indices if window.rows is None else window.rows[indices]
                yield replace(collate(preprocessor, window.take(indices)), rows=rows)
            number += 1
        first_row += len(window)
