"""Notifications of TrainJobs, with a real receiver and an operator that ends in between."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.config import new_client_from_config
from operator_process import SETTINGS, operator

from cluster.jobs import Jobs, eventually
from trainjob.api.cluster import KubernetesObject
from trainjob.api.status_reasons import explanation
from trainjob_operator.api import Api
from trainjob_operator.events import Recorder
from trainjob_operator.notifier import Notifier
from trainjob_operator.reconcile import Reconciler
from trainjob_operator.settings import Settings
from webhook_receiver import ADDRESS, Receiver, receiving

KEY = bytes(range(32))
NOTIFY = {**SETTINGS, "notify": {"secretNames": ["hook"], "hosts": [ADDRESS]}}
FAILED = {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "exit code 1"}


@pytest.fixture
def receiver(jobs: Jobs) -> Generator[Receiver]:
    with receiving() as receiver:
        secret = {"url": receiver.url, "key": base64.b64encode(KEY).decode()}
        metadata = {"name": "hook", "namespace": jobs.namespace}
        jobs.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": secret})
        yield receiver


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """Name and event of each notification that was accepted."""
    said = [json.loads(request.body) for request in receiver.accepted]
    return [(each["name"], each["event"]) for each in said]


def states(jobs: Jobs, name: str = "job") -> list[tuple[str, str, str | None]]:
    return [(each["event"], each["state"], each.get("error")) for each in jobs.status(name).get("notifications", [])]


def test_no_event_is_lost_or_told_twice_though_the_operator_ends(jobs: Jobs, receiver: Receiver, tmp_path: Path):
    notify = [{"webhook": {"secretName": "hook"}, "waitingLongerThan": "1s"}]
    receiver.status = 500
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=NOTIFY) as process:
        jobs.create(notify=notify)
        eventually(lambda: states(jobs) == [("Waiting", "Pending", "HTTP 500")], because=lambda: str(states(jobs)))
        process.kill()
    receiver.status = 204
    jobs.report("rayjobs", "job", FAILED)
    both = [("job", "Waiting"), ("job", "Failed")]
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=NOTIFY) as process:
        eventually(lambda: told(receiver) == both, because=lambda: str(told(receiver)))
        eventually(lambda: states(jobs) == [("Waiting", "Sent", None), ("Failed", "Sent", None)])
        process.kill()
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=NOTIFY):
        jobs.create("next", suspend=True, notify=[{"webhook": {"secretName": "hook"}, "events": ["Suspended"]}])
        eventually(lambda: ("next", "Suspended") in told(receiver))
    assert told(receiver) == [*both, ("next", "Suspended")]
    assert {json.loads(request.body)["id"] for request in receiver.requests[:-2]} == {
        jobs.status()["notifications"][0]["id"]
    }
    request = receiver.accepted[1]
    said = json.loads(request.body)
    assert (said["reason"], said["namespace"]) == ("AppFailed", jobs.namespace)
    assert said["message"] == jobs.status()["message"]
    known = explanation("AppFailed")
    assert known is not None
    assert said["remedy"] == known.remedy
    signed = f"{said['id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    signature = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{signature}"


def test_a_receiver_that_is_silent_holds_up_no_job(jobs: Jobs, receiver: Receiver, tmp_path: Path):
    receiver.answers.clear()
    suspended = [{"webhook": {"secretName": "hook"}, "events": ["Suspended"]}]
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=NOTIFY):
        names = [f"job-{number}" for number in range(8)]
        for name in names:
            jobs.create(name, suspend=True, notify=suspended)
        eventually(lambda: receiver.requests)
        for name in names:
            jobs.until(name, phase="Suspended")
        receiver.answers.set()
        eventually(lambda: sorted(told(receiver)) == [(name, "Suspended") for name in names], 60)
        eventually(lambda: all(states(jobs, name) == [("Suspended", "Sent", None)] for name in names))


def test_a_receiver_that_may_not_be_told_is_named_in_the_status(jobs: Jobs, receiver: Receiver, tmp_path: Path):
    def said(name: str) -> str:
        return jobs.status(name).get("message", "")

    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=NOTIFY):
        jobs.create("other", suspend=True, notify=[{"webhook": {"secretName": "other"}, "events": ["Suspended"]}])
        expected = "the operator may not read the Secret other; notify.secretNames in its settings: hook"
        eventually(lambda: f"spec.notify[0] gets no notifications: {expected}" in said("other"))
        eventually(lambda: states(jobs, "other") == [("Suspended", "Pending", expected)])
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        jobs.create("off", suspend=True, notify=[{"webhook": {"secretName": "hook"}}])
        eventually(lambda: "spec.notify has no effect: notifications are off" in said("off"))
    assert receiver.requests == []


class Dies(Api):
    """Of an operator that ends before it writes that something was sent."""

    async def patch(self, *_: Any, **__: Any) -> KubernetesObject:
        raise asyncio.CancelledError


def test_what_is_sent_again_has_the_same_id(jobs: Jobs, receiver: Receiver):
    key, settings = (jobs.namespace, "job"), Settings.model_validate(NOTIFY)

    async def act(kind: type[Api]) -> None:
        async with await new_client_from_config(str(jobs.cluster.kubeconfig)) as client:
            api = Api(client)
            await Reconciler(api, settings, Recorder(api)).reconcile(key)
            notifier = Notifier(kind(client), settings.notify, Recorder(api))
            await notifier.deliver(key)

    jobs.create(suspend=True, notify=[{"webhook": {"secretName": "hook"}, "events": ["Suspended"]}])
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(act(Dies))
    assert states(jobs) == [("Suspended", "Pending", None)]
    asyncio.run(act(Api))
    asyncio.run(act(Api))
    first, second = (json.loads(request.body) for request in receiver.accepted)
    assert first == second
    assert states(jobs) == [("Suspended", "Sent", None)]
