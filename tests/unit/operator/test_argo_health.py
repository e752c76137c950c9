"""Argo CD's health check of a TrainJob: our script, run by Argo CD's Lua, version 5.1."""

import re
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from lupa import lua51  # pyrefly: ignore[missing-module-attribute]
from operator_objects import Object, ray_job, trainjob

from trainjob.api import TrainJob
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.status import NO_WORKLOAD, derive
from trainjob_operator.verdict import Observed

ROOT = Path(__file__).parents[3]
SCRIPT = (ROOT / "manifests" / "argo-cd" / "health.lua").read_text()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRAINS = Observed(ray_job("Running", "RUNNING"))
QUEUED = Observed(ray_job("Suspended", suspend=True))


def health(body: Object) -> tuple[str, str]:
    """The health that Argo CD shows for an object, and the message beside it."""
    lua: Any = lua51.LuaRuntime(register_eval=False, unpack_returned_tuples=True)
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    found = lua.execute(SCRIPT)
    return found["status"], found["message"]


def body(job: TrainJob, observed: Observed) -> Object:
    status = derive(job, 2, TrainJobStatus(), observed, NOW).model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"metadata": {"name": "job", "generation": 2}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("job", "observed", "judged", "message"),
    [
        (trainjob(), Observed(), "Progressing", "Pending: Created"),
        (trainjob(), TRAINS, "Progressing", "Running: Training"),
        (trainjob(), Observed(error=RayJobError("NotAllowed", "root")), "Degraded", "Pending: NotAllowed: root"),
        (trainjob(), Observed(error=RayJobError("RayJobRefused", "no")), "Progressing", "Pending: RayJobRefused: no"),
        (trainjob(suspend=True), QUEUED, "Suspended", "Suspended: Suspended: spec.suspend is true"),
        (trainjob({"labels": {"kueue.x-k8s.io/queue-name": "team"}}), QUEUED, "Suspended",
         f"Suspended: Queued: waits in the queue team; {NO_WORKLOAD}"),
        (trainjob(), Observed(ray_job("Complete", "SUCCEEDED")), "Healthy", "Succeeded: Succeeded"),
        (trainjob(), Observed(ray_job("Failed", reason="AppFailed", message="exit 1")), "Degraded",
         "Failed: AppFailed: exit 1"),
    ],
)  # fmt: skip
def test_health_follows_the_phase(job: TrainJob, observed: Observed, judged: str, message: str):
    assert health(body(job, observed)) == (judged, message)


@pytest.mark.parametrize("change", [{"status": {}}, {"metadata": {"generation": 3}}])
def test_what_the_operator_has_not_seen_progresses(change: Object):
    judged, _ = health(body(trainjob(), Observed(ray_job("Complete", "SUCCEEDED"))) | change)
    assert judged == "Progressing"


def test_an_object_without_a_status_progresses():
    assert health({"metadata": {"generation": 1}})[0] == "Progressing"


def test_the_page_shows_this_script():
    [block] = re.findall(
        r"^```yaml\n(.*?health\.trainjob\.dev.*?)^```", (ROOT / "docs" / "gitops.md").read_text(), re.M | re.S
    )
    assert yaml.safe_load(dedent(block))["data"]["resource.customizations.health.trainjob.dev_TrainJob"] == SCRIPT
