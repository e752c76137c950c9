"""The operator's process: leader election, watches, workers, probes and metrics."""

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

from trainjob.api.resources import TRAIN_JOBS
from trainjob.errors import UserError
from trainjob_operator.access import AccessCheck
from trainjob_operator.api import Api, ApiError, api_client
from trainjob_operator.events import Recorder
from trainjob_operator.handlers import Watcher
from trainjob_operator.lease import REQUEST_SECONDS, Lease
from trainjob_operator.metrics import ACCESS_MISSING, LEADER, QUEUE_DEPTH, RECONCILE_SECONDS, RECONCILES, REGISTRY
from trainjob_operator.notifier import Notifier
from trainjob_operator.reconcile import MAX_REQUEUE_SECONDS, Key, Reconciler
from trainjob_operator.settings import Settings
from trainjob_operator.watching import WATCH_RETRY_SECONDS, kopf_settings, login, watch_problem
from trainjob_operator.work_queue import WorkQueue

WORKERS = 16
NOTIFIERS = 4
"""Each may need 50 MB, for a process that uses apprise."""
STUCK_SECONDS = 120
"""A request that takes longer hangs: it should have timed out long ago."""
BUSY_SECONDS = 1.0, 5.0
"""Range of the delay after the API server has refused a request because of overload: doubling delays would grow to
minutes."""
CANCEL_SECONDS = 5.0
"""How long a cancelled task may take to end before it is cancelled again."""

logger = logging.getLogger("trainjob.operator")


@dataclass
class Operator:
    """One replica of the operator."""

    settings: Settings
    access: AccessCheck
    queue: WorkQueue[Key] = field(default_factory=WorkQueue[Key])
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    api: Api | None = None
    """Set once this replica is the leader."""

    async def run(
        self, port: int, lease_namespace: str | None, other_settings: Callable[[], Coroutine[Any, Any, object]]
    ) -> bool:
        """Runs until a signal, the loss of the Lease, or the return of `other_settings`. Returns whether the operator
        should restart with new settings. Without a namespace for the Lease, it assumes that it is the only replica."""
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
        logger.info("the settings have changed; restarting")
        return True

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)

    async def _elect(self, lease: Lease) -> None:
        """Waits for the Lease and leads until it is stopped or loses the Lease."""
        LEADER.set_function(lambda: lease.is_held)
        self.ready.set()  # a standby replica counts as ready
        if not await _finishes_first(lease.acquire(), self.stop.wait()):
            return
        async with api_client(may_write=lambda: lease.is_held) as client:
            leads = await _finishes_first(self._lead(Api(client)), lease.keep())
        if leads:
            await lease.release()
        else:
            logger.error("lost the Lease; exiting")

    async def _lead(self, api: Api) -> None:
        self.api = api
        QUEUE_DEPTH.set_function(self.queue.__len__)
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(login)
        watcher = Watcher(self.queue.add, self.settings.namespaces)
        watcher.register(registry)
        recorder = Recorder(api)
        notifier = Notifier(api, self.settings.notify, recorder)
        reconciler = Reconciler(api, self.settings, recorder, notifier.add)
        workers = [asyncio.create_task(self.queue.work(partial(self._reconcile, reconciler))) for _ in range(WORKERS)]
        workers += [asyncio.create_task(notifier.work()) for _ in range(NOTIFIERS)]
        namespaces = self.settings.namespaces
        workers.append(asyncio.create_task(_forget_deleted(watcher, api, namespaces)))
        ACCESS_MISSING.set_function(lambda: bool(self._problem))
        self.ready.clear()
        try:
            if not await _finishes_first(self.access.wait(api), self.stop.wait()):
                return
            workers.append(asyncio.create_task(self.access.watch_policy(api)))
            clusterwide = await self.access.watches_whole_cluster(api)
            while not await self._watch(registry, clusterwide):
                pass
        finally:
            for worker in workers:
                worker.cancel()
            await recorder.flush()

    @property
    def _problem(self) -> str:
        """The current problem with this replica's access; empty if there is none."""
        return self.access.problem or watch_problem()

    async def _watch(self, registry: kopf.OperatorRegistry, clusterwide: bool) -> bool:
        """Watches until the process should stop, or until kopf fails, for example without credentials. Returns whether
        the process should stop. Queued TrainJobs are reconciled meanwhile."""
        try:
            await kopf.operator(
                registry=registry,
                settings=kopf_settings(),
                clusterwide=clusterwide,
                namespaces=[] if clusterwide else self.settings.namespaces,
                standalone=True,
                ready_flag=self.ready,
                stop_flag=self.stop,
            )
        except Exception as error:
            logger.warning("the watches failed: %s: %s; restarting them", type(error).__name__, error)
            self.ready.clear()
            self._take_signals()  # kopf has replaced the handlers and no longer reacts
            return await _finishes_first(self.stop.wait(), asyncio.sleep(WATCH_RETRY_SECONDS))
        return True  # on a signal, which kopf handles

    async def _reconcile(self, reconciler: Reconciler, key: Key) -> float | None:
        with RECONCILE_SECONDS.time():
            try:
                again = await reconciler.reconcile(key)
            except Exception as error:
                RECONCILES.labels("error").inc()
                logger.warning(
                    "reconciliation failed, will be retried: %s: %s",
                    type(error).__name__,
                    error,
                    extra={"job": "/".join(key)},
                )
                if isinstance(error, ApiError) and error.status == 429:
                    return random.uniform(*BUSY_SECONDS)
                raise
        RECONCILES.labels("success").inc()
        return again

    @asynccontextmanager
    async def _http(self, port: int) -> AsyncGenerator[None]:
        """Serves /healthz, /readyz and /metrics."""
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
        await asyncio.sleep(MAX_REQUEUE_SECONDS)
        with suppress(ApiError, ClientError, OSError):
            await watcher.forget_deleted(partial(api.keys, TRAIN_JOBS, namespaces))


async def _finishes_first(work: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object]) -> bool:
    """Whether `work` finishes before `other`. The slower one is cancelled, repeatedly if it does not end."""
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
