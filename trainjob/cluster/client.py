"""The TrainJobs of a cluster, with what belongs to them."""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from trainjob.api.cluster import RESOURCE_NAME, KubernetesObject
from trainjob.api.names import GROUP, KIND, VERSION
from trainjob.api.resources import EVENTS, METADATA, TRAIN_JOBS, Resource
from trainjob.cluster.connection import TIMEOUT_SECONDS, Connection, NotFound
from trainjob.cluster.errors import (
    ClusterError,
    ClusterUnreachable,
    NoSuchJob,
    NotPermitted,
    Refused,
    Silent,
)
from trainjob.cluster.job import ClusterJob, Event
from trainjob.cluster.outage import PASSING, PAUSE_SECONDS, Outage
from trainjob.cluster.served_kinds import resource_of, why_not_served

MANAGER = "trainjob-client"
"""Field manager of this client's changes."""

PAGE = 500
WATCH_SECONDS = 20
"""The API server ends a watch after this time, and the next watch continues where it ended. If it does not end a watch,
it hangs."""
_GRACE_SECONDS = 5.0
"""Seconds that a watch may last beyond its time."""


class Applied(NamedTuple):
    """The result of applying an object."""

    document: KubernetesObject
    name: str
    """The object as kubectl prints it, such as `configmap/code`."""
    outcome: Literal["created", "configured", "unchanged"]


class Change(NamedTuple):
    """Changes of some jobs."""

    jobs: list[ClusterJob]
    """New and changed jobs."""
    gone: Set[str]
    """UIDs of those that were deleted."""


class ClusterClient:
    """TrainJobs of one cluster. Methods raise ClusterError."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self.connection.namespace

    def jobs(self, namespace: str | None) -> list[ClusterJob]:
        """All jobs of a namespace or, for None, of all namespaces, by namespace and name."""
        return self._list(namespace)[0]

    def names(self, namespace: str, timeout: float = TIMEOUT_SECONDS) -> list[str]:
        """The names of up to a thousand jobs."""
        answer = self.connection.request(
            "GET", TRAIN_JOBS, namespace, query={"limit": "1000"}, accept=METADATA, timeout=timeout
        )
        return [item["metadata"]["name"] for item in answer.get("items") or ()]

    def job(self, name: str, namespace: str | None = None) -> ClusterJob:
        """The TrainJob `name`. Raises NoSuchJob, which suggests a similar name."""
        namespace = namespace or self.namespace
        if not re.fullmatch(RESOURCE_NAME, name):  # in a path it may stand for something else
            raise NoSuchJob(f"{name!r} cannot be the name of a TrainJob; `trainjob list` shows all{_if_run(name)}")
        try:
            return ClusterJob(self.connection.request("GET", TRAIN_JOBS, namespace, name))
        except NotFound as error:
            raise self._not_found(error, name, namespace) from None

    def watch(self, namespace: str | None, name: str | None = None, seconds: float | None = None) -> Iterator[Change]:
        """Yields all jobs, then each job again whenever it changes, for `seconds` or without end. After the first
        answer, it continues even if the API server is unavailable for a while, and notifies the user."""
        selector = {"fieldSelector": f"metadata.name={name}"} if name is not None else {}
        seen: dict[str, str] | None = None
        end = math.inf if seconds is None else time.monotonic() + seconds
        outage = Outage()
        while seen is None or time.monotonic() < end:
            try:
                timeout = TIMEOUT_SECONDS if seen is None else min(TIMEOUT_SECONDS, max(1, end - time.monotonic()))
                jobs, version = self._list(namespace, timeout, **selector)
            except PASSING as error:
                if seen is None:
                    raise
                outage.bear(error)
                continue
            outage.end()
            before, seen = seen, {job.uid: job.resource_version for job in jobs}
            yield Change(
                [job for job in jobs if before is None or before.get(job.uid) != job.resource_version],
                (before or {}).keys() - seen.keys(),
            )
            try:
                for kind, document in self._changes(namespace, version, selector, end - time.monotonic()):
                    job = ClusterJob(document)
                    if kind == "DELETED":
                        seen.pop(job.uid, None)
                        yield Change([], {job.uid})
                    else:
                        seen[job.uid] = job.resource_version
                        yield Change([job], set())
            except Silent as error:
                outage.bear(error)
            except ClusterUnreachable:  # as a connection that broke; the next list tells of an outage
                time.sleep(PAUSE_SECONDS)

    def follow(self, job: ClusterJob, seconds: float | None = None) -> Iterator[ClusterJob]:
        """Yields the job, and again whenever it changes, for `seconds` or without end. Raises NoSuchJob once it is
        deleted."""
        for number, change in enumerate(self.watch(job.namespace, job.name, seconds)):
            same = [each for each in change.jobs if each.uid == job.uid]
            if job.uid in change.gone or len(same) < len(change.jobs) or (number == 0 and not same):
                raise _deleted(job)
            yield from same

    def latest(self, job: ClusterJob) -> ClusterJob:
        """The job as it is now. Raises NoSuchJob if it was deleted, even if another job has its name."""
        now = self.job(job.name, job.namespace)
        if now.uid != job.uid:
            raise _deleted(job)
        return now

    def events(self, job: ClusterJob) -> list[Event]:
        """The Events of a job, the oldest first. By default, a cluster keeps them for an hour."""
        selector = f"involvedObject.kind={KIND},involvedObject.name={job.name},involvedObject.uid={job.uid}"
        found = [each for items, _ in self._pages(EVENTS, job.namespace, fieldSelector=selector) for each in items]
        found.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))  # times have no fractions of seconds
        return sorted(map(Event.of, found), key=lambda event: event.time)

    def apply(self, document: Mapping[str, Any]) -> Applied:
        """Creates an object of any kind, or changes it, by server-side apply; without a namespace of its own it goes
        into the client's."""
        resource, is_namespaced = resource_of(self.connection, document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        namespace = (metadata.get("namespace") or self.namespace) if is_namespaced else None
        group = f".{resource.group}" if resource.group else ""
        name = f"{document['kind'].lower()}{group}/{metadata['name']}"
        try:
            before = self.connection.request("GET", resource, namespace, metadata["name"])
        except NotFound:
            before = None
        _check_kept(name, before or {})
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        try:
            after, is_new = self.connection.apply(resource, namespace, metadata["name"], document, query)
        except (Refused, NotFound) as error:
            raise Refused(f"{name}: {error}") from None
        _check_kept(name, after)
        if is_new:
            return Applied(after, name, "created")
        if before is None:  # somebody else has created it in the meantime
            return Applied(after, name, "unchanged" if after["metadata"].get("generation") == 1 else "configured")
        is_same = _desired(before) == _desired(after)
        return Applied(after, name, "unchanged" if is_same else "configured")

    def suspend(self, job: ClusterJob, suspend: bool) -> ClusterJob:
        """Suspends or resumes a job."""
        return self._change(job, suspend=suspend)

    def cancel(self, job: ClusterJob) -> ClusterJob:
        """Ends a job for good, after a last checkpoint."""
        return self._change(job, cancel=True)

    def _change(self, job: ClusterJob, **spec: Any) -> ClusterJob:
        body = {"metadata": {"uid": job.uid}, "spec": spec}
        return ClusterJob(
            self.connection.request(
                "PATCH",
                TRAIN_JOBS,
                job.namespace,
                job.name,
                body,
                query={"fieldManager": MANAGER, "fieldValidation": "Strict"},
                content_type="application/merge-patch+json",
            )
        )

    def delete(self, job: ClusterJob) -> None:
        """Deletes a job with its pods; its storage stays."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
        with suppress(NotFound):
            self.connection.request("DELETE", TRAIN_JOBS, job.namespace, job.name, body)

    def _list(
        self, namespace: str | None, timeout: float = TIMEOUT_SECONDS, **query: str
    ) -> tuple[list[ClusterJob], str]:
        """All jobs, and the version of the list, from which a watch continues."""
        try:
            pages = list(self._pages(TRAIN_JOBS, namespace, timeout, **query))
        except NotFound as error:
            raise why_not_served(self.connection, error) from None
        kind = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND}  # which the items of a list lack
        return [ClusterJob(kind | each) for items, _ in pages for each in items], pages[-1][1]

    def _pages(
        self, resource: Resource, namespace: str | None, timeout: float = TIMEOUT_SECONDS, **query: str
    ) -> Iterator[tuple[list[KubernetesObject], str]]:
        """The objects of each page, and the version of the list."""
        query["limit"] = str(PAGE)
        while True:
            answer = self.connection.request("GET", resource, namespace, query=query, timeout=timeout)
            yield answer.get("items") or [], answer["metadata"]["resourceVersion"]
            if not (token := answer["metadata"].get("continue")):
                return
            query["continue"] = token

    def _changes(
        self, namespace: str | None, version: str, selector: Mapping[str, str], seconds: float
    ) -> Iterator[tuple[str, KubernetesObject]]:
        """Yields the events after a version, of one watch after the other, for `seconds` at most. Ends when the
        jobs must be listed again."""
        end, is_first = time.monotonic() + seconds, True
        while (left := end - time.monotonic()) > 0:
            limit = max(1, math.ceil(min(left, WATCH_SECONDS)))
            query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(limit), **selector}
            query["allowWatchBookmarks"] = "1"  # of the latest version, from which the next watch goes on
            try:
                for line in self.connection.lines(TRAIN_JOBS, namespace, query=query, silence=limit + _GRACE_SECONDS):
                    change = json.loads(line)
                    if change["type"] == "ERROR":  # as a rule, the version is too old by now
                        return
                    version = change["object"]["metadata"]["resourceVersion"]
                    if change["type"] != "BOOKMARK":
                        yield change["type"], change["object"]
            except json.JSONDecodeError:  # half a line: something between has ended the answer
                return
            except NotPermitted:
                if is_first:
                    raise
                return  # an API server that starts refuses what it allows
            is_first = False

    def _not_found(self, error: NotFound, name: str, namespace: str) -> ClusterError:
        if not error.is_object:
            return why_not_served(self.connection, error)
        message = f"there is no TrainJob {name} in the namespace {namespace}"
        try:
            close = get_close_matches(name, self.names(namespace), 1, 0.6)
        except ClusterError:
            close = []
        advice = f"did you mean {close[0]}?" if close else f"`trainjob list -n {namespace}` shows all"
        return NoSuchJob(f"{message}; {advice}")


def _deleted(job: ClusterJob) -> NoSuchJob:
    return NoSuchJob(f"the TrainJob {job.name} in the namespace {job.namespace} was deleted")


def _check_kept(name: str, document: Mapping[str, Any]) -> None:
    if "deletionTimestamp" in document.get("metadata", {}):
        raise Refused(f"{name} is being deleted: wait until it is gone")


def _if_run(name: str) -> str:
    return ". A run's folder is for describe, logs, cancel and the commands on models" if "/" in name else ""


def _desired(document: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status, and without metadata that the API server changes at each write."""
    notes = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in document["metadata"].items() if key not in notes}
    return {key: value for key, value in document.items() if key != "status"} | {"metadata": metadata}
