"""Rows that come while the model computes are its next batch."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from trainjob.serving.batches import Batches, QueueFull


class Doubling:
    """Computes twice a number, when it is let go; fails on batches with a negative one."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, rows: Sequence[int]) -> list[int]:
        self.started.set()
        assert self.free.wait(60)
        self.batches.append(list(rows))
        if any(row < 0 for row in rows):
            raise ValueError("negative")
        return [2 * row for row in rows]

    async def hold(self, batches: "Batches[int, int]") -> "asyncio.Task[Any]":
        """A batch of the row 0 that is computed until `free` is set."""
        self.free.clear()
        self.started.clear()
        first = asyncio.create_task(batches.answers([0]))
        await asyncio.to_thread(self.started.wait, 60)
        return first


def play(story: Callable[["Batches[int, int]", Doubling], Awaitable[None]]) -> Doubling:
    model = Doubling()

    async def main() -> None:
        batches = Batches(model, most_rows=4, most_waiting=8)
        work = asyncio.create_task(batches.work())
        try:
            await asyncio.wait_for(story(batches, model), 60)
        finally:
            model.free.set()
            work.cancel()

    threads = threading.active_count()
    asyncio.run(main())
    while threading.active_count() > threads:  # it ends with `work`, or this test does at its limit
        time.sleep(0.001)
    return model


def test_rows_that_wait_are_computed_together_in_their_order():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        others = [asyncio.create_task(batches.answers([number])) for number in range(1, 7)]
        await asyncio.sleep(0)
        assert batches.waiting == 6
        model.free.set()
        assert await first == [0]
        assert await asyncio.gather(*others) == [[2 * number] for number in range(1, 7)]

    assert play(story).batches == [[0], [1, 2, 3, 4], [5, 6]]


def test_the_next_batch_needs_no_event_loop():
    """The event loop may be busy with other requests for long."""

    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        second = asyncio.create_task(batches.answers([1, 2]))
        await asyncio.sleep(0)
        model.started.clear()
        model.free.set()
        assert model.started.wait(30)  # the event loop does nothing meanwhile
        assert not first.done()
        assert [await first, await second] == [[0], [2, 4]]

    assert play(story).batches == [[0], [1, 2]]


def test_a_row_that_fails_fails_alone():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        good, bad = (asyncio.create_task(batches.answers(rows)) for rows in ([1, 2], [3, -1]))
        await asyncio.sleep(0)
        model.free.set()
        await first
        assert await good == [2, 4]
        three, error = await bad
        assert three == 6
        assert isinstance(error, ValueError)

    play(story)


def test_what_is_too_much_is_refused_and_the_rest_answered():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        waiting = asyncio.create_task(batches.answers(range(8)))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await batches.answers([9])
        model.free.set()
        await first
        assert await waiting == [2 * number for number in range(8)]
        assert await batches.answers([9]) == [18]

    play(story)


def test_one_request_may_have_more_rows_than_may_wait():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        assert await batches.answers(range(20)) == [2 * number for number in range(20)]

    assert max(map(len, play(story).batches)) == 4


def test_rows_of_a_client_that_has_gone_are_not_computed():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        gone, other = (asyncio.create_task(batches.answers(rows)) for rows in ([1, 2, 3], [4]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        model.free.set()
        await first
        assert await other == [8]

    assert play(story).batches == [[0], [4]]


def test_a_client_that_goes_while_its_row_is_computed_disturbs_nobody():
    async def story(batches: "Batches[int, int]", model: Doubling) -> None:
        first = await model.hold(batches)
        other = asyncio.create_task(batches.answers([1]))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        model.free.set()
        assert await other == [2]

    play(story)
