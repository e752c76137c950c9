"""A client for the operator's benchmarks, with concurrent requests and watches."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from kubernetes.aio.client import ApiClient, CoreV1Api, CustomObjectsApi, V1Namespace, V1ObjectMeta

Object = Mapping[str, Any]

TRAIN_JOBS = "trainjob.dev", "v1alpha1", "trainjobs"
RAY_JOBS = "ray.io", "v1", "rayjobs"

Resource = tuple[str, str, str]

AT_ONCE = 16
"""Concurrent requests, as many as the operator's."""


class Client:
    """Plain asyncio requests in one namespace."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self.namespace = client, namespace
        self._api = CustomObjectsApi(client)

    async def create(self, resource: Resource, body: dict[str, Any]) -> Any:
        group, version, plural = resource
        return await self._api.create_namespaced_custom_object(group, version, self.namespace, plural, body)

    async def report(self, resource: Resource, name: str, status: Object) -> None:
        """Writes fields of an object's status."""
        group, version, plural = resource
        await self._api.patch_namespaced_custom_object_status(
            group,
            version,
            self.namespace,
            plural,
            name,
            {"status": status},
            _content_type="application/merge-patch+json",
        )

    async def events(self, resource: Resource) -> AsyncGenerator[Object]:
        """The objects of the namespace, and each one again when it changes."""
        group, version, plural = resource
        path = f"/apis/{group}/{version}/namespaces/{self.namespace}/{plural}?watch=true"
        while True:  # the server ends a watch that cannot keep up; the next begins with all there is
            response = await self._get(path)
            if response.status != 200:  # a server that has just started asks for patience
                await asyncio.sleep(0.1)
                continue
            line = b""
            async for part, _ in response.response.content.iter_chunks():
                *lines, line = (line + part).split(b"\n")
                for each in lines:
                    yield json.loads(each)["object"]

    async def until_all(self, resource: Resource, number: int, holds: Callable[[Object], bool]) -> float:
        """The time (time.perf_counter) when `number` objects satisfied `holds`."""
        names: set[str] = set()
        async for item in self.events(resource):
            if holds(item):
                names.add(item["metadata"]["name"])
            if len(names) == number:
                return time.perf_counter()
        raise AssertionError("a watch has no end")

    async def server_writes(self) -> int:
        """The number of requests since the API server started that changed objects written by the operator."""
        text = (await (await self._get("/metrics")).read()).decode()
        total = 0
        for line in re.findall(r"^apiserver_request_total\{.*$", text, re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels["resource"] in _WRITTEN and labels["verb"] in _WRITES:
                total += int(float(line.rsplit(" ", 1)[1]))
        return total

    async def _get(self, path: str) -> Any:
        headers = {"Accept": "*/*"}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
        url = self._client.configuration.host + path
        return await self._client.call_api("GET", url, headers, _request_timeout=3600)


_WRITTEN = ("trainjobs", "rayjobs", "networkpolicies", "events")
_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")


class Seen:
    """The times when objects of a namespace first satisfied `holds`."""

    def __init__(self, jobs: Client, resource: Resource, holds: Callable[[Object], bool]) -> None:
        self._times: dict[str, asyncio.Future[float]] = {}
        self._task = asyncio.create_task(self._watch(jobs, resource, holds))

    async def time(self, name: str) -> float:
        return await asyncio.wait_for(self._future(name), 120)

    def end(self) -> None:
        self._task.cancel()

    async def _watch(self, jobs: Client, resource: Resource, holds: Callable[[Object], bool]) -> None:
        async for item in jobs.events(resource):
            future = self._future(item["metadata"]["name"])
            if not future.done() and holds(item):
                future.set_result(time.perf_counter())

    def _future(self, name: str) -> asyncio.Future[float]:
        return self._times.setdefault(name, asyncio.get_running_loop().create_future())


@asynccontextmanager
async def namespace(client: ApiClient, name: str) -> AsyncGenerator[Client]:
    """A new namespace, deleted at the end with its contents; the next one starts after that."""
    api = CoreV1Api(client)
    await api.create_namespace(V1Namespace(metadata=V1ObjectMeta(name=name)))
    try:
        yield Client(client, name)
    finally:
        await api.delete_namespace(name)
        while (await api.list_namespace(field_selector=f"metadata.name={name}")).items:
            await asyncio.sleep(0.5)


async def at_once(work: Iterable[Callable[[], Awaitable[Any]]]) -> None:
    """Runs all of them, AT_ONCE at a time."""
    waiting = iter(work)

    async def worker() -> None:
        for do in waiting:
            await do()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def peak_mb(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6
