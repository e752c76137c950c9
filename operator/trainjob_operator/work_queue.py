"""A queue of keys, after client-go's workqueue: a key waits once however often it is added, is never with two workers
at a time, and comes again later after a failure. Urgent keys overtake the others."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_SECONDS = 0.1
LONGEST_DELAY_SECONDS = 60.0
MOST_OVERTAKING = 1000
"""At most so many urgent keys come before one that is not urgent and was added earlier."""


class WorkQueue(Generic[Key]):
    """Passes keys to workers."""

    def __init__(self) -> None:
        self._ready: asyncio.PriorityQueue[tuple[int, int, Key]] = asyncio.PriorityQueue()
        self._waiting: dict[Key, int] = {}
        """The place of each key in the queue."""
        self._urgent = 0
        self._added = 0
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._working: set[Key] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: Key, is_urgent: bool = True) -> None:
        """Has a worker take the key, once it is free; a later time that was set for it no longer counts."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._working:
            self._again.add(key)
            return
        self._urgent += is_urgent
        self._added += 1
        place = self._urgent if is_urgent else self._urgent + MOST_OVERTAKING
        if place < self._waiting.get(key, place + 1):
            self._waiting[key] = place
            self._ready.put_nowait((place, self._added, key))

    def add_after(self, key: Key, seconds: float) -> None:
        """Adds the key later, when it is not urgent, unless it is waiting already or due sooner."""
        if key in self._waiting or key in self._again:
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key, False)

    async def work(self, do: Callable[[Key], Awaitable[float | None]]) -> None:
        """Takes one key after the other for ever. `do` says after how many seconds the key is due again, if at all; a
        key for which it raises comes back after a delay that doubles each time."""
        while True:
            place, _, key = await self._ready.get()
            if self._waiting.get(key) != place:  # it has been taken from a better place since
                continue
            del self._waiting[key]
            self._working.add(key)
            try:
                again = await do(key)
                self._failures.pop(key, None)
            except Exception:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                again = min(FIRST_DELAY_SECONDS * 2 ** min(failures - 1, 16), LONGEST_DELAY_SECONDS)
            finally:
                self._working.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            elif again is not None:
                self.add_after(key, again)
