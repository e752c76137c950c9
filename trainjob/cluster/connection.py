"""The connection to a cluster's API server: requests of plain JSON."""

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kubernetes.client import ApiClient
from pydantic_core import from_json
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.response import BaseHTTPResponse

from trainjob.api.apply import APPLY, as_yaml
from trainjob.api.cluster import RESOURCE_NAME
from trainjob.api.resources import PODS, Resource
from trainjob.cluster.errors import ClusterError, ClusterUnreachable, NotPermitted, Refused, Silent

TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_PORT_FORWARD = Resource("/api/v1", "pods/portforward")
_NOT_ALLOWED = re.compile(r"cannot (\w+) resource")
"""Matches an authorizer's message about a missing verb."""


class NotFound(ClusterError):
    """There is no such object, or no such type of objects."""

    def __init__(self, message: str, is_object: bool) -> None:
        super().__init__(message)
        self.is_object = is_object
        """Whether the cluster knows the type, and lacks the object alone."""


class Connection:
    """Requests to one API server."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        """`namespace` is the default of commands. Raises ClusterError if it cannot be the name of one."""
        if not re.fullmatch(RESOURCE_NAME, namespace):
            raise ClusterError(f"{namespace!r} cannot be the name of a namespace; `kubectl get namespaces` shows all")
        self._client, self.namespace = client, namespace
        self._streams: set[BaseHTTPResponse] = set()
        self._is_interrupted = False

    def another(self) -> "Connection":
        """Another connection to the same API server, which can be interrupted by itself."""
        return Connection(self._client, self.namespace)

    def interrupt(self) -> None:
        """Ends what other threads read by `lines`, and refuses further requests: both raise ClusterError."""
        self._is_interrupted = True
        for response in tuple(self._streams):
            with suppress(RuntimeError):  # it has just ended
                response.shutdown()

    @property
    def url(self) -> str:
        return self._client.configuration.host

    def request(
        self,
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str = "",
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = TIMEOUT_SECONDS,
    ) -> dict[str, Any]:
        """The API server's answer. Raises ClusterError; NotFound if there is no such object."""
        answer = self._open(
            method,
            resource,
            namespace,
            name,
            body,
            content_type=content_type,
            accept=accept,
            read=timeout,
            query=query or {},
        )
        return self._document(answer)

    def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        query: Mapping[str, str],
    ) -> tuple[dict[str, Any], bool]:
        """The object after a server-side apply, and whether that created it. Raises ClusterError."""
        answer = self._open(
            "PATCH", resource, namespace, name, body, content_type=APPLY, read=TIMEOUT_SECONDS, query=query
        )
        return self._document(answer), answer.status == 201

    def _document(self, answer: BaseHTTPResponse) -> dict[str, Any]:
        with answer:
            try:
                found = from_json(answer.data)
            except HTTPError as error:
                raise self._unreachable(error) from None
            except ValueError:
                found = None
        if not isinstance(found, dict) or not found.keys() & {"kind", "gitVersion", "openapi"}:  # of each answer one
            raise self._unreachable(ValueError("what answers there is not Kubernetes"))
        return found

    def lines(
        self,
        resource: Resource,
        namespace: str | None,
        name: str = "",
        query: Mapping[str, str] | None = None,
        *,
        silence: float | None,
    ) -> Iterator[bytes]:
        """Yields the lines of a streamed answer as they arrive; the last one may be incomplete. Raises
        ClusterUnreachable if the connection breaks; Silent if it is silent for `silence` seconds."""
        with self._open("GET", resource, namespace, name, None, read=silence, query=query or {}) as response:
            rest = b""
            self._streams.add(response)
            try:
                self._check_interrupted()
                for piece in response.stream(2**16, decode_content=True):
                    *lines, rest = (rest + piece).split(b"\n")
                    yield from lines
            except ReadTimeoutError:
                raise Silent(f"the API server {self.url} has been silent for {silence:g} s") from None
            except HTTPError as error:
                raise self._unreachable(error) from None
            finally:
                self._streams.discard(response)
            if rest:
                yield rest

    def forward(self, namespace: str, pod: str, port: int) -> socket.socket:
        """A new connection to a port of a pod, through the API server. Raises ClusterError."""
        from kubernetes.stream.ws_client import PortForward, create_websocket, get_websocket_url
        from websocket import WebSocketBadStatusException, WebSocketException

        path = f"{PODS.path(namespace, pod)}/portforward"
        _, url, headers, *_ = self._client.param_serialize("GET", path, auth_settings=["BearerToken"])
        try:
            websocket = create_websocket(
                self._client.configuration, get_websocket_url(url, [("ports", str(port))]), headers
            )
        except WebSocketBadStatusException as error:
            answer = error.resp_body or b""
            raise self._refusal(error.status_code, answer, "GET", _PORT_FORWARD, namespace) from None
        except (WebSocketException, OSError) as error:
            raise self._unreachable(error) from None
        return PortForward(websocket, [port]).socket(port)

    def _open(
        self,
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any] | None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        read: float | None,
        query: Mapping[str, str],
    ) -> BaseHTTPResponse:
        self._check_interrupted()
        text = as_yaml(body) if body is not None and content_type == APPLY else body
        request = self._client.param_serialize(
            method,
            resource.path(namespace, name),
            query_params=list(query.items()),
            header_params={"Content-Type": content_type, "Accept": accept, "Accept-Encoding": "gzip"},
            body=text,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(*request, _request_timeout=(_CONNECT_SECONDS, read)).response
            if answer.status >= 400:
                raise self._refusal(answer.status, answer.data, method, resource, namespace)
        except HTTPError as error:
            raise self._unreachable(error) from None
        return answer

    def _check_interrupted(self) -> None:
        if self._is_interrupted:
            raise ClusterError("the requests on this connection were interrupted")

    def _unreachable(self, error: Exception) -> ClusterUnreachable:
        reason = getattr(error, "reason", None) or error
        return ClusterUnreachable(
            f"the API server {self.url} does not answer ({reason}): check the context and network"
        )

    def _refusal(
        self,
        status: int,
        answer: bytes,
        method: str,
        resource: Resource,
        namespace: str | None,
    ) -> ClusterError:
        problem = _status_of(answer)
        message = problem.get("message") or answer.decode(errors="replace")[:500].strip() or f"HTTP status {status}"
        match status:
            case 401:
                return NotPermitted(f"the API server {self.url} does not accept these credentials: log in again")
            case 403 if problem.get("reason") == "Forbidden" and (missing := _NOT_ALLOWED.search(message)):
                return NotPermitted(_missing_permission(missing[1], resource, namespace))
            case 404:
                return NotFound(message, is_object=bool(problem.get("details", {}).get("name")))
            case 429 | 502 | 503 | 504:
                return ClusterUnreachable(f"the API server {self.url} cannot serve requests now: {message}")
            case 500 if method == "GET":  # of an apply it is as a rule about the object
                return ClusterUnreachable(f"the API server {self.url} cannot serve requests now: {message}")
            case _ if not problem:  # as of a proxy
                return Refused(f"{self.url} answers {status}, and not as Kubernetes does: {message}")
            case _:
                return Refused(message)


def _status_of(answer: bytes) -> dict[str, Any]:
    """The Kubernetes Status in an answer; empty if a proxy answered, not the API server."""
    try:
        found = from_json(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _missing_permission(verb: str, resource: Resource, namespace: str | None) -> str:
    where = f"in the namespace {namespace}" if namespace is not None else "at the cluster scope"
    option = f"-n {namespace}" if namespace is not None else "-A"
    return (
        f"you may not {verb} {resource.full_name} {where}: ask its administrator for that permission "
        f"(`kubectl auth can-i {verb} {resource.full_name} {option}`)"
    )
