"""Batching of requests: rows that arrive while the model computes form its next batch."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Thread
from typing import Generic, TypeVar

Row = TypeVar("Row")
Answer = TypeVar("Answer")


class QueueFull(Exception):
    """Too many rows are waiting already."""


class Batches(Generic[Row, Answer]):
    """Computes the rows of many requests together, one batch at a time, on a thread of its own.

    If the function is idle, a row is computed at once. While the function computes, rows queue up, so batches grow with
    the load and no row waits for a batch to fill. Ray Serve's own batches are filled before the function is free, so
    either each row would wait or most batches would have one row. The thread takes its next batch itself, because it
    would be idle until the event loop, busy with requests and answers, handed it one.
    """

    def __init__(self, compute: Callable[[Sequence[Row]], Sequence[Answer]], most_rows: int, most_waiting: int) -> None:
        self._compute = compute
        self._most_rows, self._most_waiting = most_rows, most_waiting
        self._waiting: deque[tuple[Row, asyncio.Future[Answer]]] = deque()
        self._ends = False
        self._news = Condition()
        """Notified when rows are added and at the end."""

    @property
    def waiting(self) -> int:
        """The number of rows that are in no batch yet."""
        return len(self._waiting)

    async def answers(self, rows: Sequence[Row]) -> list[Answer | BaseException]:
        """The answer to each row, or the exception that the function raises for this row. Raises QueueFull if there are
        too many; but if no row is waiting, any number is accepted.
        """
        waiting = self.waiting
        if waiting and waiting + len(rows) > self._most_waiting:
            raise QueueFull
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in rows]
        with self._news:
            self._waiting.extend(zip(rows, futures, strict=True))
            self._news.notify()
        return await asyncio.gather(*futures, return_exceptions=True)

    async def work(self) -> None:
        """Computes batches until it is cancelled."""
        loop = asyncio.get_running_loop()
        Thread(target=self._compute_all, args=[loop], name="model", daemon=True).start()
        try:
            await loop.create_future()
        finally:
            with self._news:
                self._ends = True
                self._news.notify()

    def _compute_all(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
            while batch := self._next():
                answers = self._each([row for row, _ in batch])
                loop.call_soon_threadsafe(_settle, [future for _, future in batch], answers)

    def _next(self) -> list[tuple[Row, asyncio.Future[Answer]]]:
        """Waits for rows and takes the oldest, without those whose client has disconnected. None at the end."""
        batch: list[tuple[Row, asyncio.Future[Answer]]] = []
        with self._news:
            while not batch and not self._ends:
                self._news.wait_for(lambda: self._waiting or self._ends)
                while self._waiting and len(batch) < self._most_rows:
                    row, future = self._waiting.popleft()
                    if not future.done():
                        batch.append((row, future))
        return [] if self._ends else batch

    def _each(self, rows: Sequence[Row]) -> Sequence[Answer | BaseException]:
        """The answer to each row. If the batch fails, each row is tried alone."""
        try:
            return self._compute(rows)
        except Exception as error:
            if len(rows) == 1:
                return [error]
        return [answer for row in rows for answer in self._each([row])]


def _settle(futures: Sequence[asyncio.Future[Answer]], answers: Sequence[Answer | BaseException]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():  # its client has gone
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
