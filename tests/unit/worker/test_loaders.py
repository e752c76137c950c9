"""Every row is taken once, in an order that changes with the epoch and is the same whenever it is asked for."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from preprocessors import image_classifier
from trainjob.data import Examples
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.examples import batches_by_length
from trainjob.data.batches.loaders import (
    BucketSampler,
    Shard,
    memory_windows,
    scoring_batches,
    shuffled_batches,
)
from trainjob.data.prefetch import AHEAD, prefetched
from trainjob.kinds.inputs.image import ImageInput


def _lengths(rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(3, 200, rows)


def _epoch(sampler: BucketSampler, epoch: int) -> list[np.ndarray]:
    sampler.epoch = epoch
    return list(sampler)


def test_a_cut_holds_every_row_once_and_rows_of_like_length_together():
    lengths = _lengths(1000)
    batches = batches_by_length(lengths, 32)
    assert sorted(np.concatenate(batches)) == list(range(1000))
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 1.1 * lengths.sum()
    assert padded < 0.7 * 1000 * lengths.max()


def test_cuts_are_shuffled_by_their_seed_alone():
    lengths = _lengths(500)
    first, again, other = (shuffled_batches(lengths, 32, [7, seed]) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("rows", "world_size", "batch_size"),
    [(601, 2, 32), (2500, 3, 21), (64, 4, 64), (5, 2, 16), (50, 3, 16), (49, 3, 8)],
)
def test_ranks_share_the_rows_of_an_epoch(rows: int, world_size: int, batch_size: int):
    lengths = _lengths(rows)
    samplers = [BucketSampler(lengths, Shard(rank, world_size, batch_size, seed=3)) for rank in range(world_size)]
    epochs = [_epoch(sampler, 4) for sampler in samplers]
    taken = np.concatenate([np.concatenate(batches) for batches in epochs])
    assert sorted(taken) == list(range(rows))
    for shares in zip(*epochs, strict=True):
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert [len(batches) for batches in epochs] == [len(samplers[0])] * world_size


@pytest.mark.parametrize("rows", [600, 1201, 2999])
def test_any_number_of_ranks_takes_the_same_rows_in_a_step(rows: int):
    lengths = _lengths(rows)

    def steps(world_size: int) -> list[set[int]]:
        ranks = [_epoch(BucketSampler(lengths, Shard(rank, world_size, 24, seed=3)), 1) for rank in range(world_size)]
        return [set(np.concatenate(batches).tolist()) for batches in zip(*ranks, strict=True)]

    alone = steps(1)
    assert set().union(*alone) == set(range(rows))
    for world_size in (2, 3, 8):
        assert steps(world_size) == alone


def test_each_epoch_has_an_order_of_its_own():
    sampler = BucketSampler(_lengths(601), Shard(0, 2, 32, seed=3))
    orders = [np.concatenate(_epoch(sampler, epoch)) for epoch in (0, 1, 0)]
    assert np.array_equal(orders[0], orders[2])
    assert set(orders[0]) != set(orders[1])


@pytest.mark.parametrize(("batch_size", "count", "ranks"), [(48, 4, 3), (16, 16, 11), (9, 3, 2), (6, 3, 1)])
def test_fewer_ranks_compute_a_batch_in_parts_that_are_no_larger(batch_size: int, count: int, ranks: int):
    shards = [Shard(rank, ranks, batch_size, seed=3) for rank in range(ranks)]
    parts = shards[0].micro_batches(count)
    assert shards[0].for_scoring(count).rows_per_rank == batch_size // count
    seen: list[int] = []
    for shard in shards:
        own = torch.arange(batch_size)[shard.rank :: ranks]
        batches = Batch({"input_ids": 10 * own[:, None]}, own, padding=len(own)).micro_batches(parts)
        assert len(batches) == parts
        assert all(0 < len(batch.labels) <= batch_size // count for batch in batches)
        assert [batch.weight for batch in batches] == [len(batch) for batch in batches]
        counted = [batch for batch in batches if batch.is_real]
        assert sum(map(len, counted)) == len(own)
        assert sum(batch.token_slots for batch in batches) == sum(batch.padding for batch in batches) == len(own)
        for batch in counted:
            assert torch.equal(batch.inputs["input_ids"][:, 0], 10 * batch.labels)
            seen += batch.labels.tolist()
    assert sorted(seen) == list(range(batch_size))


@pytest.mark.parametrize("rows", [1, 31, 1025, 3000])
def test_scoring_batches_hold_every_row_in_one_batch_of_one_rank(rows: int):
    images = ImageInput(height=1, width=1, channels=1, mean=[0.0], std=[1.0], resize=False)
    preprocessor = image_classifier(images, ["a", "b"], [1, 1])
    labels = np.arange(rows)
    examples = Examples(np.zeros(rows, np.uint8), np.arange(rows + 1), labels)
    seen = [
        label
        for rank in range(3)
        for batch in scoring_batches(memory_windows(examples, 1024), preprocessor, Shard(rank, 3, 32, seed=0))
        for label in batch.labels.tolist()
    ]
    assert sorted(seen) == labels.tolist()


def test_what_is_made_ahead_comes_in_its_order_and_ends_as_it_does():
    made = list[int]()
    begun = list[str]()

    def items(most: int) -> Iterator[int]:
        for number in range(most):
            made.append(number)
            yield number
        raise ValueError("no more")

    taken = prefetched(items(9), lambda: begun.append(threading.current_thread().name))
    assert [next(taken) for _ in range(3)] == [0, 1, 2]
    taken.close()
    assert made == list(range(3 + AHEAD))
    assert len(begun) == 1
    assert begun != [threading.current_thread().name]
    assert list(prefetched(iter(range(1)))) == [0]
    with pytest.raises(ValueError, match="no more"):
        list(prefetched(items(2)))


@pytest.mark.parametrize("padding", [0, 3])
def test_a_mask_goes_along_where_there_is_padding(padding: int):
    inputs = {"input_ids": torch.ones(2, 4), "attention_mask": torch.ones(2, 4)}
    batch = Batch(inputs, torch.zeros(2), padding=padding).without_full_mask()
    assert ("attention_mask" in batch.inputs) == bool(padding)
    assert "input_ids" in batch.inputs
