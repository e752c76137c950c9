"""The queue on a clock that jumps to whatever is due next, so that no test waits and times are exact."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from trainjob_operator.work_queue import MAX_DELAY_SECONDS, MAX_OVERTAKING, WorkQueue

Work = Callable[[str], Awaitable[float | None]]


class Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "nothing is due: this would wait for ever"
        self.now += timeout
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main)


def now() -> float:
    return round(asyncio.get_running_loop().time(), 6)


async def settle(queue: WorkQueue[str], do: Work, workers: int = 1, seconds: float = 1000) -> None:
    """Runs workers on the queue for a while."""
    tasks = [asyncio.create_task(queue.work(do)) for _ in range(workers)]
    await asyncio.sleep(seconds)
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Log:
    """Notes when each key was worked on; what it `returns` for a key, one after the other, is None at the end."""

    def __init__(self, **returns: list[float | Exception | None]) -> None:
        self.seen: list[tuple[str, float]] = []
        self.returns = returns

    async def __call__(self, key: str) -> float | None:
        self.seen.append((key, now()))
        answers = self.returns.get(key, [])
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_key_waits_once_however_often_it_is_added():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        for key in ("a", "b", "a", "a", "b", "c"):
            queue.add(key)
        assert len(queue) == 3
        await settle(queue, log)
        assert log.seen == [("a", 0), ("b", 0), ("c", 0)]
        assert len(queue) == 0

    run(main())


def test_urgent_keys_overtake_others():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        for number in range(5):
            queue.add(f"listed-{number}", False)
        queue.add("new")
        queue.add("listed-3")
        queue.add("listed-3", False)
        assert len(queue) == 6
        await settle(queue, log)
        assert [key for key, _ in log.seen] == ["new", "listed-3", "listed-0", "listed-1", "listed-2", "listed-4"]
        assert len(queue) == 0

    run(main())


def test_urgent_keys_without_end_hold_up_nothing_for_ever():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        queue.add("listed", False)
        for number in range(2 * MAX_OVERTAKING):
            queue.add(f"new-{number}")
        await settle(queue, log)
        assert 0 < [key for key, _ in log.seen].index("listed") <= MAX_OVERTAKING

    run(main())


@pytest.mark.parametrize("added", [1, 2, 10])
def test_a_key_that_is_added_while_it_is_worked_on_comes_again_once_afterwards(added: int):
    async def main() -> None:
        queue, seen = WorkQueue[str](), list[tuple[str, str, float]]()

        async def do(key: str) -> None:
            seen.append(("begin", key, now()))
            if len(seen) == 1:
                for _ in range(added):
                    queue.add(key)
                queue.add("other")
            await asyncio.sleep(5)
            seen.append(("end", key, now()))

        queue.add("a")
        await settle(queue, do, workers=3)
        assert [item for item in seen if item[1] == "a"] == [
            ("begin", "a", 0), ("end", "a", 5), ("begin", "a", 5), ("end", "a", 10),
        ]  # fmt: skip
        assert ("begin", "other", 0) in seen

    run(main())


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_a_key_is_never_with_two_workers(workers: int):
    async def main() -> None:
        queue, busy, rounds = WorkQueue[str](), list[str](), dict[str, int]()
        together: set[int] = set()

        async def do(key: str) -> float | None:
            busy.append(key)
            together.update([busy.count(key), 100 * len(busy)])
            queue.add(key)
            await asyncio.sleep(len(key))
            queue.add(key)
            busy.remove(key)
            rounds[key] = rounds.get(key, 0) + 1
            if rounds[key] % 3 == 0:
                raise OSError
            return 0.5

        for number in range(1, 9):
            queue.add("x" * number)
        await settle(queue, do, workers)
        assert together == {1, *range(100, 100 * min(workers, 8) + 1, 100)}
        assert len(rounds) == 8
        assert min(rounds.values()) > 10

    run(main())


def test_a_failure_comes_back_after_a_delay_that_doubles_up_to_a_limit():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log(a=[OSError()] * 13)
        queue.add("a")
        queue.add("b")
        await settle(queue, log)
        times = [time for key, time in log.seen if key == "a"]
        delays = [round(after - before, 6) for before, after in pairwise(times)]
        assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2] + [MAX_DELAY_SECONDS] * 3
        assert ("b", 0) in log.seen

    run(main())


def test_after_a_success_delays_start_anew():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log(a=[OSError(), OSError(), 10, OSError()])
        queue.add("a")
        await settle(queue, log)
        assert log.seen == [("a", 0), ("a", 0.1), ("a", 0.3), ("a", 10.3), ("a", 10.4)]

    run(main())


def test_a_key_that_fails_thousands_of_times_still_comes_back():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log(a=[OSError()] * 3000)
        queue.add("a")
        await settle(queue, log, seconds=3001 * MAX_DELAY_SECONDS)
        assert len(log.seen) == 3001

    run(main())


def test_a_key_is_due_again_when_the_work_says_so():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log(a=[4, 15, None], b=[0])
        queue.add("a")
        queue.add("b")
        await settle(queue, log)
        assert log.seen == [("a", 0), ("b", 0), ("b", 0), ("a", 4), ("a", 19)]

    run(main())


@pytest.mark.parametrize(
    ("delays", "times"),
    [([7], [7]), ([7, 3], [3]), ([3, 7], [3]), ([3, 3], [3]), ([0.05, 60, 4], [0.05])],
)
def test_of_several_times_the_soonest_counts(delays: list[float], times: list[float]):
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        for delay in delays:
            queue.add_after("a", delay)
        assert len(queue) == 0
        await settle(queue, log)
        assert log.seen == [("a", time) for time in times]

    run(main())


def test_a_key_that_is_added_at_once_does_not_come_again_at_its_later_time():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        queue.add_after("a", 7)
        queue.add("a")
        queue.add_after("a", 7)
        await settle(queue, log)
        assert log.seen == [("a", 0)]

    run(main())


def test_cancelled_work_leaves_its_key_free():
    async def main() -> None:
        queue, log = WorkQueue[str](), Log()
        queue.add("a")
        stuck = asyncio.create_task(queue.work(lambda _: asyncio.sleep(3600, None)))
        await asyncio.sleep(1)
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        queue.add("a")
        await settle(queue, log)
        assert log.seen == [("a", 1)]

    run(main())
