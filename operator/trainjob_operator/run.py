"""The operator's process: leader election, kopf's watching, workers, probes and metrics."""

import asyncio
import logging
import random
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import kopf
from aiohttp import ClientError, web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from trainjob.errors import UserError
from trainjob_operator.access import Access
from trainjob_operator.api import TRAIN_JOBS, Api, ApiError, api_client
from trainjob_operator.events import Recorder
from trainjob_operator.handlers import Watcher
from trainjob_operator.lease import REQUEST_SECONDS, Lease
from trainjob_operator.metrics import ACCESS_MISSING, LEADER, QUEUE_DEPTH, RECONCILE_SECONDS, RECONCILES, REGISTRY
from trainjob_operator.reconcile import LONGEST_SECONDS, Key, Reconciler
from trainjob_operator.settings import Settings
from trainjob_operator.watching import WATCH_SECONDS, kopf_settings, login, watch_problem
from trainjob_operator.work_queue import WorkQueue

WORKERS = 16
STUCK_SECONDS = 120
"""A request that takes longer will not come back: it should have timed out long ago."""
BUSY_SECONDS = 1.0, 5.0
"""When to ask an API server again that has too much to do: after many refusals, delays that double would be minutes."""
CANCEL_SECONDS = 5.0
"""How long what is cancelled may take to end."""

logger = logging.getLogger("trainjob.operator")


@dataclass
class Operator:
    """One replica."""

    settings: Settings
    access: Access
    queue: WorkQueue[Key] = field(default_factory=WorkQueue[Key])
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    api: Api | None = None
    """What it makes its requests with, once it leads."""

    async def run(
        self, port: int, lease_namespace: str | None, other_settings: Callable[[], Coroutine[Any, Any, object]]
    ) -> bool:
        """Serves until a signal ends it, it is no longer the leader, or `other_settings` returns: returns whether it is
        to begin anew because of these. Without a namespace for the Lease it takes itself for the only replica."""
        self._take_signals()
        change = asyncio.create_task(other_settings())
        change.add_done_callback(lambda _: self.stop.set())
        async with api_client() as client, self._http(port):
            if lease_namespace is None:
                LEADER.set(1)
                await self._lead(Api(client))
            else:
                await self._elect(Lease(Api(client, REQUEST_SECONDS), lease_namespace))
        if not change.done():
            change.cancel()
            return False
        change.result()
        logger.info("the settings have changed; beginning anew")
        return True

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)

    async def _elect(self, lease: Lease) -> None:
        """Leads once it has the Lease, until it is to stop or has lost it: a process that is started anew stands by."""
        LEADER.set_function(lambda: lease.is_held)
        self.ready.set()  # a replica that stands by is as ready as it gets
        if not await _ends_first(lease.acquire(), self.stop.wait()):
            return
        async with api_client(may_write=lambda: lease.is_held) as client:
            leads = await _ends_first(self._lead(Api(client)), lease.keep())
        if leads:
            await lease.release()
        else:
            logger.error("the Lease could not be kept; ending")

    async def _lead(self, api: Api) -> None:
        self.api = api
        QUEUE_DEPTH.set_function(self.queue.__len__)
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(login)
        watcher = Watcher(self.queue.add)
        watcher.register(registry)
        recorder = Recorder(api)
        reconciler = Reconciler(api, self.settings, recorder)
        workers = [asyncio.create_task(self.queue.work(partial(self._reconcile, reconciler))) for _ in range(WORKERS)]
        namespaces = self.settings.namespaces
        workers.append(asyncio.create_task(_forget_deleted(watcher, api, namespaces)))
        ACCESS_MISSING.set_function(lambda: bool(self._problem))
        self.ready.clear()
        try:
            if not await _ends_first(self.access.gain(api), self.stop.wait()):
                return
            workers.append(asyncio.create_task(self.access.watch_policy(api)))
            while not await self._watch(registry):
                pass
        finally:
            for worker in workers:
                worker.cancel()
            await recorder.flush()

    @property
    def _problem(self) -> str:
        """What the API server does not give this replica; empty if it gives all."""
        return self.access.problem or watch_problem()

    async def _watch(self, registry: kopf.OperatorRegistry) -> bool:
        """Watches until the process is to stop, or until kopf cannot go on, as where it gets no credentials: returns
        whether it is to stop. What has waited to be reconciled goes on meanwhile."""
        namespaces = self.settings.namespaces
        try:
            await kopf.operator(
                registry=registry,
                settings=kopf_settings(),
                clusterwide=not namespaces,
                namespaces=namespaces,
                standalone=True,
                ready_flag=self.ready,
                stop_flag=self.stop,
            )
        except Exception as error:
            logger.warning("what changes cannot be watched: %s: %s; beginning anew", type(error).__name__, error)
            self.ready.clear()
            self._take_signals()  # which kopf has taken, and answers no more
            return await _ends_first(self.stop.wait(), asyncio.sleep(WATCH_SECONDS))
        return True  # a signal, which kopf takes in the place of this process

    async def _reconcile(self, reconciler: Reconciler, key: Key) -> float | None:
        with RECONCILE_SECONDS.time():
            try:
                again = await reconciler.reconcile(key)
            except Exception as error:
                RECONCILES.labels("error").inc()
                logger.warning(
                    "failed, will be tried again: %s: %s", type(error).__name__, error, extra={"job": "/".join(key)}
                )
                if isinstance(error, ApiError) and error.status == 429:
                    return random.uniform(*BUSY_SECONDS)
                raise
        RECONCILES.labels("success").inc()
        return again

    @asynccontextmanager
    async def _http(self, port: int) -> AsyncGenerator[None]:
        """/healthz, /readyz and /metrics."""
        application = web.Application()
        application.add_routes(
            [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz), web.get("/metrics", _metrics)]
        )
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, port=port).start()
        except OSError as error:
            raise UserError(f"--port {port}: {error.strerror}") from None
        try:
            yield
        finally:
            await runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        stuck = self.api is not None and self.api.longest_wait > STUCK_SECONDS
        return web.Response(status=500 if stuck else 200, text="a request is stuck" if stuck else "ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        problem = self._problem or ("" if self.ready.is_set() else "starting")
        return web.Response(status=503 if problem else 200, text=problem)


async def _forget_deleted(watcher: Watcher, api: Api, namespaces: list[str]) -> None:
    while True:
        await asyncio.sleep(LONGEST_SECONDS)
        with suppress(ApiError, ClientError, OSError):
            await watcher.forget_deleted(partial(api.keys, TRAIN_JOBS, namespaces))


async def _ends_first(work: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object]) -> bool:
    """Whether `work` ends before `other`; the one that does not is cancelled, again if it has not ended by that."""
    first, second = asyncio.create_task(work), asyncio.create_task(other)
    await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
    if not first.done():
        while not first.done():
            first.cancel()
            await asyncio.wait([first], timeout=CANCEL_SECONDS)
        return False
    second.cancel()
    first.result()
    return True


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})
