"""Configures kopf's watches: its connection, and less work for each object than by default."""

import asyncio
import logging
import os
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import kopf
from aiohttp import ClientHandlerType, ClientPayloadError, ClientRequest, ClientResponse, ClientSession, TCPConnector
from kopf._cogs.clients import errors, watching
from kopf._core.reactor import processing, queueing
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import load_incluster_config
from pydantic_core import from_json

from trainjob.api.names import UID_LABEL
from trainjob.api.resources import PODS, RAY_JOBS

WATCH_RETRY_SECONDS = 1.0
"""Delay after a watch, or all of them, has failed. Kopf itself has retried a refused watch for a minute by then."""
LISTED = "LISTED"
"""The type of the event, without an object, that follows the objects of each list."""

logger = logging.getLogger("trainjob.operator")


SSLProtocol.max_size = 32 * 1024
"""Bytes of the read buffer that asyncio keeps for each TLS connection. Its own 256 KiB take most of the memory of an
operator with many namespaces, each of which needs three connections."""


async def login(**arguments: Any) -> kopf.AiohttpSession | None:
    """kopf's usual connection to the API server, with a reduced representation of RayJobs and pods."""
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
    login_of_kopf = kopf.login_with_service_account if in_cluster else kopf.login_with_kubeconfig
    connection = login_of_kopf(**arguments)
    if connection is None:
        return None
    server = connection.server
    if in_cluster:  # by IP address, as in all other requests, so that it works without the cluster's DNS
        configuration = Configuration()
        load_incluster_config(configuration)
        server = configuration.host
    session = ClientSession(
        connector=TCPConnector(limit=0, ssl=connection.as_ssl_context()),
        headers=connection.as_http_headers(),
        proxy=connection.proxy_url,
        middlewares=[_request_metadata_only],
        response_class=_Response,
    )
    return kopf.AiohttpSession(server=server, expiration=connection.expiration, aiohttp_session=session)


async def _request_metadata_only(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Requests only the metadata of RayJobs and pods, as nothing else is used. Whole objects would take most of the
    startup time."""
    if request.url.path.rpartition("/")[2] in (RAY_JOBS.plural, PODS.plural):
        kind = "PartialObjectMetadata" if "watch" in request.url.query else "PartialObjectMetadataList"
        request.headers["Accept"] = f"application/json;as={kind};g=meta.k8s.io;v=v1"
    return await send(request)


class _Response(ClientResponse):
    """Uses a faster JSON parser, and replaces the null items of an empty list of metadata, which kopf does not expect,
    by an empty list."""

    async def json(self, **options: Any) -> Any:
        found = await super().json(**options) if self.status >= 400 else from_json(await self.read())
        return found | {"items": []} if isinstance(found, dict) and found.get("items", []) is None else found


def kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
    settings.watching.chunk_size = 25  # without streaming; a TrainJob may take more than a megabyte
    settings.watching.label_selectors["rayjobs"] = UID_LABEL
    settings.watching.label_selectors["pods"] = UID_LABEL
    settings.process.ultimate_exiting_timeout = None  # otherwise kopf kills the process some time after a failure
    return settings


async def _call_handlers(*, registry: kopf.OperatorRegistry, resource: Any, raw_event: Any, **_: Any) -> None:
    """Calls the handlers of an event and does nothing else."""
    for handler in registry._watching.get_all_handlers():  # noqa: SLF001
        if handler.selector is not None and handler.selector.check(resource):
            handle: Any = handler.fn
            try:
                await handle(body=raw_event["object"], type=raw_event["type"])
            except Exception:
                logger.exception("a %s could not be handled: %s", resource.kind, raw_event["object"].get("metadata"))


processing.process_resource_event = _call_handlers  # pyrefly: ignore[bad-assignment]
"""Replaces kopf's event processing, which also supports other kinds of handlers. It keeps state for each object, a
hundred megabytes in a large cluster, and takes a third of the startup time there."""


async def _watch(
    *,
    settings: kopf.OperatorSettings,
    resource: Any,
    namespace: Any,
    processor: Callable[..., Awaitable[Any]],
    **_: Any,
) -> None:
    """Processes the events of a resource one after the other, forever. LISTED also follows a list that broke off."""
    listed = {"type": LISTED, "object": {}}
    while True:
        async for event in _watch_until_failed(settings, resource, namespace):
            if isinstance(event, watching.Bookmark):
                await processor(raw_event=listed)
            elif event["type"] != "BOOKMARK":
                await processor(raw_event=event)
        await processor(raw_event=listed)
        await asyncio.sleep(settings.watching.reconnect_backoff)


queueing.watcher = _watch
"""Replaces kopf's watcher, which has a queue and a task for each object, so that a slow handler delays no other object.
The operator's handlers only queue a TrainJob, and kopf's tasks take half of the startup time. Kopf's watcher can also
lose a cancellation while it is paused: a replica that had lost its Lease ran on forever."""

_kopf_watch_objs = watching.watch_objs


async def _watch_objects(*, since: str | None = None, **arguments: Any) -> AsyncIterator[Any]:
    """Yields the events of one request. Raises ClientPayloadError if the initial list breaks off."""
    is_listed = since is not None
    async for event in _kopf_watch_objs(since=since, **arguments):
        is_listed = is_listed or event["type"] in ("BOOKMARK", "ERROR")
        yield event
    if not is_listed:
        raise ClientPayloadError("the list broke off")


watching.watch_objs = _watch_objects
"""Lists again if a streamed list breaks off. Kopf would continue from the version of the last object that arrived and
never see the objects that come later in the list but are older."""

_problems: dict[tuple[Any, Any], str] = {}
"""Current problems by resource and namespace (None: the whole cluster)."""


def watch_problem() -> str:
    """A resource that cannot be watched at the moment, and why; empty if there is none."""
    return next(iter(_problems.values()), "")


async def _watch_until_failed(settings: kopf.OperatorSettings, resource: Any, namespace: Any) -> AsyncIterator[Any]:
    """Yields the events of one list and the watches after it. A refused or malformed response ends this one generator;
    kopf alone would shut down all of its tasks, which takes seconds."""
    watch, never = (resource, namespace), asyncio.get_running_loop().create_future()
    try:
        async for event in watching.continuous_watch(
            settings=settings, resource=resource, namespace=namespace, operator_pause_waiter=never
        ):
            _problems.pop(watch, None)
            yield event
        return
    except ClientPayloadError:
        return
    except errors.APIUnprocessableEntityError:  # a Kubernetes before 1.34 does not stream lists
        settings.watching.initial_streaming = False
        return
    except Exception as error:
        where = f" in {namespace}" if namespace else ""
        why = f"{resource.plural}{where} cannot be watched: {type(error).__name__}: {error}"
        if _problems.get(watch) != why:
            logger.warning("%s; retrying", why)
        _problems[watch] = why
    await asyncio.sleep(WATCH_RETRY_SECONDS)
