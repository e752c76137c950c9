"""A queue of keys, modeled on client-go's workqueue: a key is queued at most once, is never processed by two workers at
the same time, and is retried after a failure. Urgent keys overtake the others."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 60.0
MAX_OVERTAKING = 1000
"""How many urgent keys may overtake an earlier key that is not urgent."""


class WorkQueue(Generic[Key]):
    """Hands keys to workers."""

    def __init__(self) -> None:
        self._ready: asyncio.PriorityQueue[tuple[int, int, Key]] = asyncio.PriorityQueue()
        self._priorities: dict[Key, int] = {}
        """The priority of each queued key; the lowest comes first."""
        self._urgent_count = 0
        """Urgent keys added so far."""
        self._added_count = 0
        """Keys added so far; of equal priorities, the one added first comes first."""
        self._added_while_working: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._working: set[Key] = set()

    def __len__(self) -> int:
        return len(self._priorities)

    def add(self, key: Key, is_urgent: bool = True) -> None:
        """Queues the key and cancels its timer, if it has one."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._working:
            self._added_while_working.add(key)
            return
        self._urgent_count += is_urgent
        self._added_count += 1
        priority = self._urgent_count if is_urgent else self._urgent_count + MAX_OVERTAKING
        if priority < self._priorities.get(key, priority + 1):
            self._priorities[key] = priority
            self._ready.put_nowait((priority, self._added_count, key))

    def add_after(self, key: Key, seconds: float) -> None:
        """Adds the key later, as not urgent, unless it is queued already or due sooner."""
        if key in self._priorities or key in self._added_while_working:
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key, False)

    async def work(self, do: Callable[[Key], Awaitable[float | None]]) -> None:
        """Processes keys forever. `do` returns the seconds until the key is due again, or None. If it raises, the key
        is retried after a delay that doubles with each failure."""
        while True:
            priority, _, key = await self._ready.get()
            if self._priorities.get(key) != priority:  # it was queued again with a better priority and taken
                continue
            del self._priorities[key]
            self._working.add(key)
            try:
                delay = await do(key)
                self._failures.pop(key, None)
            except Exception:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                delay = min(FIRST_DELAY_SECONDS * 2 ** min(failures - 1, 16), MAX_DELAY_SECONDS)
            finally:
                self._working.discard(key)
            if key in self._added_while_working:
                self._added_while_working.discard(key)
                self.add(key)
            elif delay is not None:
                self.add_after(key, delay)
