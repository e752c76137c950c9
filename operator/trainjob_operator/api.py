"""The requests that the operator makes of the API server. Objects are plain dictionaries, as in YAML."""

import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import yaml
from aiohttp import BytesPayload, ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from aiohttp.abc import AbstractStreamWriter
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config.incluster_config import load_incluster_config
from pydantic_core import from_json

from trainjob.api.cluster import KubernetesObject
from trainjob.api.trainjob import GROUP, PLURAL, VERSION
from trainjob.errors import UserError
from trainjob_operator.names import MANAGER

TRAIN_JOBS = f"/apis/{GROUP}/{VERSION}", PLURAL
RAY_JOBS = "/apis/ray.io/v1", "rayjobs"
PODS = "/api/v1", "pods"
EVENTS = "/api/v1", "events"
NETWORK_POLICIES = "/apis/networking.k8s.io/v1", "networkpolicies"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2", "workloads"
POLICIES = "/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies"
POLICY_BINDINGS = "/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"

Resource = tuple[str, str]

APPLY = "application/apply-patch+yaml; charset=utf-8"
MERGE = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

TIMEOUT_SECONDS = 30

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that YAML takes in an escaped form only."""


class ApiError(Exception):
    """The API server's refusal, by its HTTP status and in its words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Reads and writes single objects of a namespace."""

    def __init__(self, client: ApiClient, timeout: float = TIMEOUT_SECONDS) -> None:
        """A request ends after `timeout` seconds."""
        self._client, self._timeout = client, timeout
        self._under_way: dict[object, float] = {}
        self._server_time: tuple[datetime, float] | None = None
        """The API server's time at its last answer, and what this machine's monotonic clock said then."""

    @property
    def now(self) -> datetime:
        """The API server's time, in whole seconds: clocks of machines differ, and this one is every replica's."""
        if self._server_time is None:
            return datetime.now(UTC)
        then, since = self._server_time
        return (then + timedelta(seconds=time.monotonic() - since)).replace(microsecond=0)

    @property
    def longest_wait(self) -> float:
        """For how many seconds the oldest request under way has been so."""
        now = time.monotonic()
        return now - min(self._under_way.values(), default=now)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> KubernetesObject | None:
        """The object, or None where there is none; None as the namespace is for those that are in none."""
        try:
            return await self._send("GET", _path(resource, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, resource: Resource, namespace: str, **query: str) -> list[KubernetesObject]:
        """All objects by `labelSelector`."""
        return (await self._send("GET", _path(resource, namespace), query=query))["items"]

    async def pages(
        self,
        resource: Resource,
        namespace: str | None,
        page: int,
        accept: str = "application/json",
        **query: str,
    ) -> AsyncGenerator[Sequence[KubernetesObject]]:
        """All objects by `labelSelector` or `fieldSelector`, in a namespace or everywhere; so many at a time, as one
        may take a megabyte."""
        query["limit"] = str(page)
        while True:
            answer = await self._send("GET", _path(resource, namespace), query=query, accept=accept)
            yield answer["items"] or []
            if not (token := answer["metadata"].get("continue")):
                return
            query["continue"] = token

    async def keys(self, resource: Resource, namespaces: Sequence[str], page: int = 100) -> set[tuple[str, str]]:
        """Namespace and name of each object in these namespaces or, if none is named, in all."""
        found: set[tuple[str, str]] = set()
        for namespace in namespaces or (None,):
            async for items in self.pages(resource, namespace, page, METADATA):
                found |= {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items}
        return found

    async def check_list(self, resource: Resource, namespace: str | None) -> None:
        """Raises ApiError where a resource cannot be listed in a namespace or, for None, everywhere."""
        await self._send("GET", _path(resource, namespace), query={"limit": "1"}, accept=METADATA)

    async def discover(self, resource: Resource) -> None:
        """Raises ApiError as long as the API server's discovery, which lags behind a new CRD, has no such resource."""
        root, plural = resource
        served = {each["name"] for each in (await self._send("GET", root))["resources"]}
        groups = (await self._send("GET", "/apis"))["groups"]
        roots = {"/api/v1", *(f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"])}
        if plural not in served or root not in roots:
            raise ApiError(404, "the API server's discovery does not name them yet")

    async def create(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> KubernetesObject:
        return await self._send("POST", _path(resource, namespace), body, {"fieldManager": MANAGER})

    async def apply(
        self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any], version: str | None = None
    ) -> KubernetesObject:
        """Server-side apply of the object, which takes back fields of ours that others have changed. With a `version`,
        the API server refuses it if the object has changed since that resourceVersion."""
        query = {"fieldManager": MANAGER, "force": "true"}
        if version is not None:
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        return await self._send("PATCH", _path(resource, namespace, name), _yaml(body), query, APPLY)

    async def merge(
        self, resource: Resource, namespace: str, name: str, changes: Mapping[str, Any]
    ) -> KubernetesObject:
        query = {"fieldManager": MANAGER}
        return await self._send("PATCH", _path(resource, namespace, name), changes, query, MERGE)

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Sequence[Mapping[str, Any]]
    ) -> KubernetesObject:
        """JSON Patch; of the object's status, where the name ends in /status."""
        path, query = _path(resource, namespace, name), {"fieldManager": MANAGER}
        return await self._send("PATCH", path, patch, query, "application/json-patch+json")

    async def replace(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> KubernetesObject:
        """Writes an object as a whole, unless it has changed since its `resourceVersion`."""
        return await self._send("PUT", _path(resource, namespace, name), body, {"fieldManager": MANAGER})

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Deletes the object of this UID, and then what it owns; one that has gone is fine."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._send("DELETE", _path(resource, namespace, name), body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    @contextmanager
    def _counted(self) -> Generator[None]:
        """In the block a request is under way."""
        request = object()
        self._under_way[request] = time.monotonic()
        try:
            yield
        finally:
            del self._under_way[request]

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> KubernetesObject:
        headers = {"Content-Type": content_type, "Accept": accept}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = f"{self._client.configuration.host}{path}?{urlencode(query or {})}"
        with self._counted():
            response = await self._client.call_api(method, url, headers, body, _request_timeout=self._timeout)
            if date := response.headers.get("Date"):
                self._server_time = parsedate_to_datetime(date), time.monotonic()
            answer = await response.read()
        if response.status >= 400:
            raise ApiError(response.status, _message(answer))
        return from_json(answer or b"{}")


@asynccontextmanager
async def api_client(may_write: Callable[[], bool] = lambda: True) -> AsyncGenerator[ApiClient]:
    """A client of the cluster that this pod runs in, or else of the one that KUBECONFIG names; while `may_write` says
    no, none of its requests changes anything. Raises UserError where there is no cluster."""
    configuration = Configuration(
        client_session_kwargs={
            "middlewares": [writes_only_while(may_write)],
            "trust_env": False,  # or ~/.netrc is read for each request
        }
    )
    try:
        load_incluster_config(configuration)
    except config.ConfigException:
        try:
            await config.load_kube_config(client_configuration=configuration)
        except (config.ConfigException, yaml.YAMLError, OSError, TypeError) as error:
            raise UserError(f"there is neither a pod's service account nor a kubeconfig: {error}") from None
    async with ApiClient(configuration) as client:
        yield client


def writes_only_while(may_write: Callable[[], bool]) -> ClientMiddlewareType:
    """Has a request that does more than read fail where `may_write` says no at the moment that its body is sent: the
    process may have been held up while it waited for a connection."""

    class Body(BytesPayload):
        async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
            if not may_write():
                raise ApiError(409, "this replica does not lead any more, so it writes nothing")
            await super().write_with_length(writer, content_length)

    async def guarded(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if request.method != "GET":
            body = request.body
            await request.update_body(Body(body if isinstance(body, bytes) else await body.as_bytes()))
        return await handler(request)

    return guarded


def _yaml(body: Mapping[str, Any]) -> str:
    """JSON that is YAML, too: JSON escapes characters beyond U+FFFF in two halves, which YAML refuses."""
    text = json.dumps(body, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


def _message(answer: bytes) -> str:
    """A refusal's words; not all are Kubernetes' objects, such as those of a server or proxy with too much to do."""
    try:
        return json.loads(answer)["message"]
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:1024].strip()


def _path(resource: Resource, namespace: str | None, name: str = "") -> str:
    root, plural = resource
    within = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"{root}{within}/{plural}" + (f"/{name}" if name else "")
