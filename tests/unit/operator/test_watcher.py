"""The results of the watch: which TrainJobs to reconcile, and how many there are."""

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from operator_objects import Object, document

from trainjob_operator.handlers import Watcher
from trainjob_operator.metrics import JOBS
from trainjob_operator.reconcile import Key
from trainjob_operator.watching import LISTED

JOB = ("team", "job")


class Watched:
    """A watcher and what it has added to the queue."""

    def __init__(self) -> None:
        self.added: list[Key] = []
        self.urgent: list[bool] = []
        self.watcher = Watcher(self._add)

    def _add(self, key: Key, is_urgent: bool) -> None:
        self.added.append(key)
        self.urgent.append(is_urgent)

    def train_job(self, kind: str | None, name: str = "job", status: Object | None = None, **spec: Any) -> list[Key]:
        body: Any = document({"name": name, "generation": 1}, **spec) | ({"status": status} if status else {})
        asyncio.run(self.watcher.train_job(body, type=kind))
        return self.after(kind)

    def ray_job(self, kind: str | None, metadata: Object) -> list[Key]:
        body: Any = {"metadata": {"namespace": "team", **metadata}}
        asyncio.run(self.watcher.ray_job(body, type=kind))
        return self.after(kind)

    def after(self, kind: str | None) -> list[Key]:
        """What was added for an event; for an object from a list, at the end of the list."""
        if kind is None:
            asyncio.run(self.watcher.owned_object({}, type=LISTED))
        return self.taken()

    def taken(self) -> list[Key]:
        added = self.added[:]
        self.added.clear()
        return added


@pytest.fixture
def watched() -> Watched:
    JOBS.clear()
    return Watched()


def numbers() -> dict[tuple[str, str], float]:
    samples = next(iter(JOBS.collect())).samples
    return {(each.labels["namespace"], each.labels["phase"]): each.value for each in samples}


@pytest.mark.parametrize("resource", ["train_job", "ray_job", "owned_object"])
def test_listed_trainjobs_are_queued_at_the_end_of_the_list(watched: Watched, resource: str):
    """Or of any other list: each may break off."""
    pending: Any = {"status": {"phase": "Pending"}}
    for name in ("first", "second"):
        body = document({"name": name, "generation": 1}) | pending
        asyncio.run(watched.watcher.train_job(body, type=None))
    assert watched.train_job("ADDED", "new") == [("team", "new")]
    asyncio.run(getattr(watched.watcher, resource)({}, type=LISTED))
    assert watched.taken() == [("team", "first"), ("team", "second")]
    asyncio.run(getattr(watched.watcher, resource)({}, type=LISTED))
    assert watched.taken() == []


OWNED: Object = {"ownerReferences": [{"kind": "TrainJob", "name": "job"}]}
NAMED: Object = {"annotations": {"trainjob.dev/name": "job"}}


@pytest.mark.parametrize("metadata", [OWNED, NAMED])
@pytest.mark.parametrize(
    ("kind", "more", "is_urgent"),
    [
        ("ADDED", {}, False),
        ("ADDED", {"finalizers": ["ray.io/rayjob-finalizer"]}, True),
        ("MODIFIED", {}, True),
        ("DELETED", {}, True),
        (None, {}, True),
    ],
)
def test_a_rayjob_without_its_annotation_is_found_by_its_owner(
    watched: Watched, metadata: Object, kind: str | None, more: Object, is_urgent: bool
):
    assert watched.train_job("ADDED") == [JOB]
    assert watched.ray_job(kind, metadata | more) == ([JOB] if is_urgent else [])
    assert watched.ray_job(kind, {"annotations": {}}) == []


def test_what_a_list_tells_is_not_urgent_but_for_a_trainjob_that_nobody_has_seen(watched: Watched):
    watched.train_job(None, status={"observedGeneration": -1})
    watched.train_job(None, status={"phase": "Running"})
    watched.ray_job(None, OWNED)
    watched.ray_job("MODIFIED", OWNED)
    assert watched.urgent == [True, False, False, True]


@pytest.mark.parametrize(
    ("reason", "spec", "is_settled"),
    [
        ("Succeeded", {}, True),
        ("Succeeded", {"ttlAfterFinished": "1d"}, False),
        ("Succeeded", {"rayJobTTLAfterFinished": "1d"}, False),
        ("Succeeded", {"deadlines": {"total": "1d"}}, False),
        ("Succeeded", {"deadlines": {"start": "1d"}}, True),
        ("DeadlineExceeded", {}, False),
        ("ValidationFailed", {}, False),
    ],
)
def test_a_job_that_has_ended_is_looked_at_while_something_is_left_to_do(
    watched: Watched, reason: str, spec: Object, is_settled: bool
):
    status = {"phase": "Failed", "reason": reason, "observedGeneration": 1}
    assert watched.train_job(None, status=status, **spec) == ([] if is_settled else [JOB])


def test_a_job_with_a_pending_notification_is_looked_at(watched: Watched):
    for state, looked_at in (("Pending", [JOB]), ("Sent", []), ("Failed", [])):
        ended = {"phase": "Failed", "observedGeneration": 1, "notifications": [{"id": "1", "state": state}]}
        assert watched.train_job(None, status=ended) == looked_at


def test_a_job_that_has_just_ended_is_looked_at(watched: Watched):
    """Also after a restart, as KubeRay may not have ended its RayJob."""
    ended = datetime.now(UTC)
    for ago, looked_at in ((timedelta(minutes=1), [JOB]), (timedelta(days=1), [])):
        status = {"phase": "Succeeded", "observedGeneration": 1, "completionTime": (ended - ago).isoformat()}
        assert watched.train_job(None, status=status) == looked_at


@pytest.mark.parametrize("generation", [None, 0])
def test_a_job_whose_spec_has_changed_after_its_end_is_looked_at(watched: Watched, generation: int | None):
    assert watched.train_job("MODIFIED", status={"phase": "Succeeded", "observedGeneration": generation}) == [JOB]


@pytest.mark.parametrize(("reason", "is_news"), [("HeadLost", True), ("Training", False), ("PodsReady", False)])
def test_progress_is_news_only_of_a_job_whose_head_was_lost(watched: Watched, reason: str, is_news: bool):
    def report(second: int) -> list[Key]:
        training = {"stage": "Training", "updatedTime": f"2026-01-01T00:00:{second:02}Z"}
        return watched.train_job("MODIFIED", status={"phase": "Running", "reason": reason, "training": training})

    assert report(1) == [JOB]
    assert [report(2), report(2), report(3)] == ([[JOB], [], [JOB]] if is_news else [[], [], []])


def test_large_annotations_are_compared_but_not_kept(watched: Watched):
    def change(text: str) -> list[Key]:
        body: Any = document({"name": "job", "generation": 1, "annotations": {"notes": text * 200_000}})
        asyncio.run(watched.watcher.train_job(body | {"status": {"phase": "Pending"}}, type="MODIFIED"))
        return watched.taken()

    assert [change("a"), change("a"), change("b")] == [[JOB], [], [JOB]]
    assert len(pickle.dumps(watched.watcher._seen)) < 1000  # noqa: SLF001


def test_jobs_are_counted_by_namespace_and_phase(watched: Watched):
    watched.train_job("ADDED")
    watched.train_job("ADDED", "other")
    assert numbers() == {("team", "Pending"): 2}
    watched.train_job("MODIFIED", status={"phase": "Running"})
    assert numbers() == {("team", "Pending"): 1, ("team", "Running"): 1}
    watched.train_job("DELETED", "other")
    assert numbers() == {("team", "Running"): 1}
    watched.train_job("DELETED", status={"phase": "Running"})
    assert numbers() == {}


def test_jobs_that_were_deleted_unseen_are_not_counted_for_ever(watched: Watched):
    async def present() -> set[Key]:
        return {JOB, ("team", "new")}

    watched.train_job("ADDED")
    watched.train_job("ADDED", "gone", {"phase": "Succeeded"})
    asyncio.run(watched.watcher.forget_deleted(present))
    assert numbers() == {("team", "Pending"): 1}
