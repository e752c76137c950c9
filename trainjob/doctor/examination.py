"""Runs all checks, each within a limit of time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import TypeVar

from trainjob import interrupts
from trainjob.api import TrainJob
from trainjob.api.names import GROUP, KIND, VERSION
from trainjob.api.storage import Storage
from trainjob.cluster.connection import Connection
from trainjob.cluster.errors import ClusterError, ClusterUnreachable
from trainjob.doctor.admission import pods_admitted, progress_policy
from trainjob.doctor.components import kuberay, namespace, operator, server, trainjobs
from trainjob.doctor.findings import Finding, unknown
from trainjob.doctor.installation import Subject, installation
from trainjob.doctor.nodes import nodes
from trainjob.doctor.permissions import operator_permissions, permissions
from trainjob.doctor.probe import probe
from trainjob.doctor.queues import kueue
from trainjob.doctor.secrets import secrets
from trainjob_operator.render import with_storage

_Result = TypeVar("_Result")

_LIMIT_SECONDS = 10.0
"""The time limit of each check except the pod's."""
_CHECKS: list[tuple[str, Callable[[Subject], Iterator[Finding]]]] = [
    ("namespace", namespace),
    ("TrainJob type", trainjobs),
    ("permissions", permissions),
    ("operator", operator),
    ("operator's permissions", operator_permissions),
    ("progress policy", progress_policy),
    ("KubeRay", kuberay),
    ("nodes", nodes),
    ("Kueue", kueue),
    ("Secrets", secrets),
    ("admission", pods_admitted),
]
_ANY_JOB = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": KIND,
    "metadata": {"name": "doctor"},
    "spec": {
        "model": {"textClassifier": {"encoder": {}}},
        "dataset": {"train": {"uri": "s3://data/train.csv"}, "text": ["text"], "label": "label"},
    },
}


def examine(
    connection: Connection,
    job: TrainJob | None,
    storage: Storage | None,
    pod_seconds: int,
    on_wait: Callable[[str], None],
) -> Iterator[Finding]:
    """Yields the findings of all checks, for a job if one is given.

    `storage` replaces the job's, and the operator's default. Raises ClusterUnreachable if the API server does not
    answer at all.
    """
    yield _in_time(lambda: server(connection), connection)
    subject = _in_time(lambda: _subject(connection, job or TrainJob.model_validate(_ANY_JOB), storage), connection)
    running = [(name, interrupts.in_thread(lambda check=check: list(check(subject)))) for name, check in _CHECKS]
    end = time.monotonic() + _LIMIT_SECONDS
    for name, future in running:
        try:
            yield from _result(future, end)
        except TimeoutError:
            yield unknown(name, f"no answer within {_LIMIT_SECONDS:.0f} s")
        except ClusterError as error:
            yield unknown(name, str(error))
    yield from probe(subject, pod_seconds, on_wait)


def _subject(connection: Connection, job: TrainJob, storage: Storage | None) -> Subject:
    """The job in the connection's namespace, with the storage that it would have."""
    found = installation(connection)
    spec = job.spec.model_copy(update={"storage": storage or job.spec.storage})
    metadata = job.metadata.model_copy(update={"namespace": connection.namespace})
    job = job.model_copy(update={"spec": spec, "metadata": metadata})
    return Subject(connection, with_storage(job, None, found.settings) if found.settings is not None else job, found)


def _in_time(work: Callable[[], _Result], connection: Connection) -> _Result:
    try:
        return _result(interrupts.in_thread(work), time.monotonic() + _LIMIT_SECONDS)
    except TimeoutError:
        limit = f"{_LIMIT_SECONDS:.0f} s"
        message = f"the API server {connection.url} does not answer within {limit}: check the context and network"
        raise ClusterUnreachable(message) from None


def _result(future: "Future[_Result]", end: float) -> _Result:
    """The result. Raises TimeoutError if there is none at the time `end`."""
    while not future.done():
        interrupts.check()
        if time.monotonic() >= end:
            raise TimeoutError
        wait([future], interrupts.POLL_SECONDS)
    return future.result()
