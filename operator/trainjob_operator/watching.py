"""How kopf watches: with which connection, and how little it asks for and does for each object."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import kopf
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession, TCPConnector
from kopf._cogs.clients import watching
from kopf._core.reactor import processing, queueing
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import load_incluster_config
from pydantic_core import from_json

from trainjob.api.names import UID_LABEL
from trainjob_operator.api import PODS, RAY_JOBS

WATCH_SECONDS = 1.0
"""Between a watch, or all of them, that has failed and the next. Kopf has tried what is refused for a minute before."""

logger = logging.getLogger("trainjob.operator")


async def login(**arguments: Any) -> kopf.AiohttpSession | None:
    """kopf's connection to the API server, as it would make it itself, but for what is asked of RayJobs and pods."""
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
    found = (kopf.login_with_service_account if in_cluster else kopf.login_with_kubeconfig)(**arguments)
    if found is None:
        return None
    server = found.server
    if in_cluster:  # by its address, as all other requests: it is there while the cluster's DNS is not
        configuration = Configuration()
        load_incluster_config(configuration)
        server = configuration.host
    session = ClientSession(
        connector=TCPConnector(limit=0, ssl=found.as_ssl_context()),
        headers=found.as_http_headers(),
        proxy=found.proxy_url,
        middlewares=[_metadata_alone],
        response_class=_Response,
    )
    return kopf.AiohttpSession(server=server, expiration=found.expiration, aiohttp_session=session)


async def _metadata_alone(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Of RayJobs and pods nothing else is looked at, and to read all of them takes longer than all else at a start."""
    if request.url.path.rpartition("/")[2] in (RAY_JOBS[1], PODS[1]):
        kind = "PartialObjectMetadata" if "watch" in request.url.query else "PartialObjectMetadataList"
        request.headers["Accept"] = f"application/json;as={kind};g=meta.k8s.io;v=v1"
    return await send(request)


class _Response(ClientResponse):
    """Read by a quicker parser; an empty list of metadata has null in the place of its items, which kopf does not
    expect."""

    async def json(self, **options: Any) -> Any:
        found = await super().json(**options) if self.status >= 400 else from_json(await self.read())
        return found | {"items": []} if isinstance(found, dict) and found.get("items", []) is None else found


def kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = 25  # a TrainJob may have more than a megabyte
    settings.watching.label_selectors["rayjobs"] = UID_LABEL
    settings.watching.label_selectors["pods"] = UID_LABEL
    settings.process.ultimate_exiting_timeout = None  # else kopf kills the process some time after it has failed
    return settings


async def _call_handlers(*, registry: kopf.OperatorRegistry, resource: Any, raw_event: Any, **_: Any) -> None:
    """Calls the handlers of an event, and nothing else."""
    for handler in registry._watching.get_all_handlers():  # noqa: SLF001
        if handler.selector is not None and handler.selector.check(resource):
            handle: Any = handler.fn
            try:
                await handle(body=raw_event["object"], type=raw_event["type"])
            except Exception:
                logger.exception("%s that cannot be taken up: %s", resource.kind, raw_event["object"].get("metadata"))


processing.process_resource_event = _call_handlers  # pyrefly: ignore[bad-assignment]
"""Kopf's own way from an event to its handlers also serves handlers of other kinds: it keeps an account of each object,
a hundred megabytes in a large cluster, and takes a third of the time of a start there."""


async def _watch(
    *,
    settings: kopf.OperatorSettings,
    resource: Any,
    namespace: Any,
    processor: Callable[..., Awaitable[Any]],
    **_: Any,
) -> None:
    """Takes up one event of a resource after the other, for ever."""
    while True:
        async for event in _watch_until_failed(settings, resource, namespace):
            if not isinstance(event, watching.Bookmark) and event["type"] != "BOOKMARK":
                await processor(raw_event=event)
        await asyncio.sleep(settings.watching.reconnect_backoff)


queueing.watcher = _watch
"""Kopf's own one has a queue and a task for each object, so that handlers that wait hold up no other object: ours only
mark a TrainJob for a reconciliation. They take half of the time of a start. It can also be paused, and in between it
loses a cancellation: the process of a replica that had lost its Lease went on for ever."""

_problems: dict[tuple[Any, Any], str] = {}
"""Why a resource cannot be watched now in a namespace, or in the whole cluster."""


def watch_problem() -> str:
    """What cannot be watched now, and why; empty if all can."""
    return next(iter(_problems.values()), "")


async def _watch_until_failed(settings: kopf.OperatorSettings, resource: Any, namespace: Any) -> AsyncIterator[Any]:
    """One list and the watches that follow it. One that tells what makes no sense, or is refused, ends this, where kopf
    itself would end all that it does, which takes seconds, and with it what else runs."""
    watch, never = (resource, namespace), asyncio.get_running_loop().create_future()
    try:
        async for event in watching.continuous_watch(
            settings=settings, resource=resource, namespace=namespace, operator_pause_waiter=never
        ):
            _problems.pop(watch, None)
            yield event
        return
    except Exception as error:
        where = f" in {namespace}" if namespace else ""
        why = f"{resource.plural}{where} cannot be watched: {type(error).__name__}: {error}"
        if _problems.get(watch) != why:
            logger.warning("%s; listing anew until it can", why)
        _problems[watch] = why
    await asyncio.sleep(WATCH_SECONDS)
