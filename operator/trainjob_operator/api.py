"""The operator's requests to the API server. Objects are plain dictionaries, as in YAML."""

import json
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

from trainjob.api.apply import APPLY, as_yaml
from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import METADATA, Resource
from trainjob.errors import UserError
from trainjob_operator.names import MANAGER

NETWORK_POLICIES = Resource("/apis/networking.k8s.io/v1", "networkpolicies")
WORKLOADS = Resource("/apis/kueue.x-k8s.io/v1beta2", "workloads")
ACCESS_REVIEWS = Resource("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
POLICIES = Resource("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
POLICY_BINDINGS = Resource("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings")

MERGE = "application/merge-patch+json"

TIMEOUT_SECONDS = 30


class ApiError(Exception):
    """A refusal by the API server, with its HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Reads and writes Kubernetes objects."""

    def __init__(self, client: ApiClient, timeout: float = TIMEOUT_SECONDS) -> None:
        """Requests time out after `timeout` seconds."""
        self._client, self._timeout = client, timeout
        self._pending: dict[object, float] = {}
        self._server_time: tuple[datetime, float] | None = None
        """The API server's time in its last response, and this machine's monotonic clock at that moment."""

    @property
    def now(self) -> datetime:
        """The API server's time in whole seconds. Machines' clocks differ; this one is the same for every replica."""
        if self._server_time is None:
            return datetime.now(UTC)
        then, since = self._server_time
        return (then + timedelta(seconds=time.monotonic() - since)).replace(microsecond=0)

    @property
    def longest_wait(self) -> float:
        """Seconds that the oldest pending request has been waiting."""
        now = time.monotonic()
        return now - min(self._pending.values(), default=now)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> KubernetesObject | None:
        """The object, or None if it does not exist. The namespace of cluster-scoped objects is None."""
        try:
            return await self._send("GET", resource.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, resource: Resource, namespace: str, **query: str) -> list[KubernetesObject]:
        """All objects that match the query, such as a `labelSelector`."""
        return (await self._send("GET", resource.path(namespace), query=query))["items"]

    async def pages(
        self,
        resource: Resource,
        namespace: str | None,
        page: int,
        accept: str = "application/json",
        **query: str,
    ) -> AsyncGenerator[Sequence[KubernetesObject]]:
        """All objects that match `labelSelector` or `fieldSelector`, in a namespace or in all, in pages of `page`
        objects: one object may take a megabyte."""
        query["limit"] = str(page)
        while True:
            answer = await self._send("GET", resource.path(namespace), query=query, accept=accept)
            yield answer["items"] or []
            if not (token := answer["metadata"].get("continue")):
                return
            query["continue"] = token

    async def keys(self, resource: Resource, namespaces: Sequence[str], page: int = 100) -> set[tuple[str, str]]:
        """Namespace and name of each object in these namespaces, or in all if the list is empty."""
        found: set[tuple[str, str]] = set()
        for namespace in namespaces or (None,):
            async for items in self.pages(resource, namespace, page, METADATA):
                found |= {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items}
        return found

    async def check_list(self, resource: Resource, namespace: str | None) -> None:
        """Raises ApiError if the resource cannot be listed in the namespace (None: in the whole cluster)."""
        await self._send("GET", resource.path(namespace), query={"limit": "1"}, accept=METADATA)

    async def discover(self, resource: Resource) -> None:
        """Raises ApiError while the API server's discovery, which lags behind a new CRD, does not have the resource."""
        root, plural = resource
        served = {each["name"] for each in (await self._send("GET", root))["resources"]}
        groups = (await self._send("GET", "/apis"))["groups"]
        roots = {"/api/v1", *(f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"])}
        if plural not in served or root not in roots:
            raise ApiError(404, "the API server's discovery does not list them yet")

    async def may(self, verb: str, resource: Resource) -> bool:
        """Whether the operator has this permission in the whole cluster."""
        attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
        review = await self.create(ACCESS_REVIEWS, None, {"spec": {"resourceAttributes": attributes}})
        return review["status"]["allowed"]

    async def create(self, resource: Resource, namespace: str | None, body: Mapping[str, Any]) -> KubernetesObject:
        return await self._send("POST", resource.path(namespace), body, {"fieldManager": MANAGER})

    async def apply(
        self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any], version: str | None = None
    ) -> KubernetesObject:
        """Applies the object server-side, reverting changes by others to the operator's fields. With a `version`, fails
        if the object has changed since that resourceVersion."""
        query = {"fieldManager": MANAGER, "force": "true"}
        if version is not None:
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        return await self._send("PATCH", resource.path(namespace, name), as_yaml(body), query, APPLY)

    async def merge(
        self, resource: Resource, namespace: str, name: str, changes: Mapping[str, Any]
    ) -> KubernetesObject:
        query = {"fieldManager": MANAGER}
        return await self._send("PATCH", resource.path(namespace, name), changes, query, MERGE)

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Sequence[Mapping[str, Any]]
    ) -> KubernetesObject:
        """Applies a JSON Patch, to the object's status if the name ends in /status."""
        path, query = resource.path(namespace, name), {"fieldManager": MANAGER}
        return await self._send("PATCH", path, patch, query, "application/json-patch+json")

    async def replace(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> KubernetesObject:
        """Replaces the whole object. Fails if it has changed since its `resourceVersion`."""
        return await self._send("PUT", resource.path(namespace, name), body, {"fieldManager": MANAGER})

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Deletes the object with this UID and, in the background, its dependents. A missing object is not an error."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._send("DELETE", resource.path(namespace, name), body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Counts a request as pending during the block."""
        request = object()
        self._pending[request] = time.monotonic()
        try:
            yield
        finally:
            del self._pending[request]

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
    """A client of the cluster that this pod runs in, otherwise of the one in KUBECONFIG. Sends no write request while
    `may_write` returns False. Raises UserError if there is no cluster."""
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
    """Middleware that fails a write request if `may_write` returns False when its body is sent: the process may have
    been delayed while it waited for a connection."""

    class Body(BytesPayload):
        async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
            if not may_write():
                raise ApiError(409, "this replica is no longer the leader and writes nothing")
            await super().write_with_length(writer, content_length)

    async def guarded(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if request.method != "GET":
            body = request.body
            await request.update_body(Body(body if isinstance(body, bytes) else await body.as_bytes()))
        return await handler(request)

    return guarded


def _message(answer: bytes) -> str:
    """The message of an error response. Overloaded servers and proxies do not send Kubernetes Status objects."""
    try:
        return json.loads(answer)["message"]
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:1024].strip()
