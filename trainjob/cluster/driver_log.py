"""Reads the driver's log from the submitter pod, without gaps or repeated lines."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import SUBMITTER_CONTAINER, UID_LABEL
from trainjob.api.resources import PODS
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.connection import TIMEOUT_SECONDS, NotFound
from trainjob.cluster.errors import ClusterUnreachable, Refused
from trainjob.cluster.job import ClusterJob
from trainjob.cluster.outage import PASSING, PAUSE_SECONDS, Outage

SILENCE_SECONDS = 15.0
"""A connection that is silent for this long may be dead, as after a laptop's sleep, and is replaced. The user is told
only where the API server does not answer."""
ANSWER_SECONDS = 10.0
"""How long the API server may take to answer before the user is told."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")
"""Seconds, fraction and time zone: containerd writes the node's own zone."""


class LogPosition:
    """A position in a log, by time: a reading that starts at a time repeats the lines of that time."""

    def __init__(self) -> None:
        self._moment, self._lines, self._skipped = "", 0, 0
        self.time: str | None = None
        """Time of the last line, in whole seconds, as Kubernetes takes it."""

    def begin(self) -> None:
        """Call it before each reading."""
        self._skipped = 0

    def is_new(self, stamp: str) -> bool:
        """Whether the next line, which has the time `stamp`, was not read before."""
        match = _TIME.fullmatch(stamp)
        assert match is not None, stamp
        seconds, fraction, zone = match.groups("")
        moment = f"{seconds}.{fraction:0<9}"
        if moment < self._moment:
            return False
        if moment > self._moment:
            self._moment, self._lines, self._skipped = moment, 1, 1
            self.time = f"{seconds}{zone}"
            return True
        self._skipped += 1
        if self._skipped <= self._lines:
            return False
        self._lines += 1
        return True


def driver_lines(
    client: ClusterClient, job: ClusterJob, follow: bool, since: int | None, on_wait: Callable[[str], None]
) -> Iterator[bytes] | None:
    """The lines of the driver's log, or of its last `since` seconds; None if its pod is gone or not created yet. With
    `follow`, continues over all attempts until the job ends, and calls `on_wait` with the reason while it waits."""
    pod = _submitter(client, job)
    if pod is None and (job.has_ended or not follow):
        return None
    return _lines(client, job, pod, follow, since, on_wait)


def _lines(
    client: ClusterClient,
    job: ClusterJob,
    pod: KubernetesObject | None,
    follow: bool,
    since: int | None,
    on_wait: Callable[[str], None],
) -> Iterator[bytes]:
    read: set[str] = set()
    outage, is_over = Outage(), not follow
    while True:
        if pod is not None and pod["metadata"]["uid"] not in read and (_has_started(pod) or not follow):
            read.add(pod["metadata"]["uid"])
            yield from _lines_of(client, pod, follow, since)
            since = None
        if is_over:
            return
        try:
            now = client.latest(job)
            if not now.has_ended:
                on_wait(f"{now.phase_and_reason}: {now.message or 'the driver has not started yet'}")
                time.sleep(PAUSE_SECONDS)
            pod, is_over = _submitter(client, now), now.has_ended  # at the end, it may have a pod not yet read
        except PASSING as error:
            outage.bear(error)
        else:
            outage.end()


def _lines_of(client: ClusterClient, pod: KubernetesObject, follow: bool, since: int | None) -> Iterator[bytes]:
    """Yields one pod's lines, and reconnects if the connection breaks."""
    metadata, position, outage = pod["metadata"], LogPosition(), Outage()
    query = {"container": SUBMITTER_CONTAINER, "timestamps": "true"}
    if since is not None:
        query["sinceSeconds"] = str(since)
    while True:
        try:
            is_over = not follow or not _runs(client, metadata)  # first: an ended pod's log is complete
        except PASSING as error:
            outage.bear(error)
            continue
        outage.end()
        position.begin()
        try:
            more, silence = ({}, TIMEOUT_SECONDS) if is_over else ({"follow": "true"}, SILENCE_SECONDS)
            lines = client.connection.lines(
                PODS, metadata["namespace"], f"{metadata['name']}/log", query | more, silence=silence
            )
            for line in lines:
                time_and_text = split_time(line)
                if time_and_text is None:
                    if not follow:
                        raise Refused(f"the log of {metadata['name']} is gone: {line.decode(errors='replace')}")
                elif position.is_new(time_and_text[0]):
                    yield time_and_text[1]
        except ClusterUnreachable:
            if not follow:
                raise
            is_over = False
        except NotFound:
            return
        if is_over:
            return
        if position.time is not None:
            query.pop("sinceSeconds", None)
            query["sinceTime"] = position.time
        time.sleep(PAUSE_SECONDS)


def split_time(line: bytes) -> tuple[str, bytes] | None:
    """The time and the text of a line. None if it has no time: then it is not of the log but an error of the kubelet,
    which answers with one line when the container has been removed."""
    stamp, _, text = line.partition(b" ")
    time_of_line = stamp.decode(errors="replace")
    return (time_of_line, text) if _TIME.fullmatch(time_of_line) else None


def _submitter(client: ClusterClient, job: ClusterJob) -> KubernetesObject | None:
    """The newest pod that hands the entry point to Ray."""
    selector = {"labelSelector": f"{UID_LABEL}={job.uid}", "limit": "500"}
    pods = client.connection.request("GET", PODS, job.namespace, query=selector).get("items") or []
    found = [pod for pod in pods if any(each["name"] == SUBMITTER_CONTAINER for each in pod["spec"]["containers"])]
    found.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
    return found[-1] if found else None


def _has_started(pod: KubernetesObject) -> bool:
    return pod.get("status", {}).get("phase") not in (None, "Pending")


def _runs(client: ClusterClient, metadata: dict[str, Any]) -> bool:
    try:
        pod = client.connection.request("GET", PODS, metadata["namespace"], metadata["name"], timeout=ANSWER_SECONDS)
    except NotFound:
        return False
    return pod["metadata"]["uid"] == metadata["uid"] and pod.get("status", {}).get("phase") == "Running"
