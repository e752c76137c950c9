"""Tasks that should end do end, even if a cancellation is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import watching
from kopf._core.reactor import queueing

from trainjob_operator import run


def test_what_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "CANCEL_SECONDS", 0.01)
    begun: list[int] = []

    async def work() -> None:
        for number in range(3):
            begun.append(number)
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                if number == 2:
                    raise

    async def end() -> bool:
        return await asyncio.wait_for(run._finishes_first(work(), asyncio.sleep(0)), 30)  # noqa: SLF001

    assert asyncio.run(end()) is False
    assert begun == [0, 1, 2]


@pytest.mark.parametrize("steps", range(12))
def test_a_watch_ends_wherever_it_is_cancelled(monkeypatch: pytest.MonkeyPatch, steps: int):
    """Also while it was about to list again."""

    async def nothing(**_: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0)
        for event in ():
            yield event

    async def take_up(**_: Any) -> None: ...

    async def end() -> bool:
        settings = kopf.OperatorSettings()
        settings.watching.reconnect_backoff = 0
        watch: Any = queueing.watcher
        task = asyncio.create_task(watch(settings=settings, resource=None, namespace=None, processor=take_up))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        return bool(done)

    monkeypatch.setattr(watching, "continuous_watch", nothing)
    assert asyncio.run(end())
