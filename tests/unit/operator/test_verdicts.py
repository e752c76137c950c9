"""Whole verdicts on jobs that have not ended, with their messages."""

from typing import Any

import pytest
from operator_objects import Object, pod, ray_job
from verdict_cases import ENDED, KILLED, OTHER_HEAD, OUT_OF_MEMORY, Case, failed, head, status, submitter

from trainjob.api.trainjob_status import Waiting
from trainjob_operator.errors import RayJobError
from trainjob_operator.verdict import DELETING, Verdict

QUEUE: Object = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
DELETION = "RayJob job-1 is being deleted; a new one is created once it is gone"
WAITING = Waiting(pods=1, reason="ImagePullBackOff", message="no image")


def deleted(ray_job: Object, **metadata: Any) -> Object:
    return ray_job | {"metadata": {"name": "job-1", "deletionTimestamp": ENDED, **metadata}}


def workload(active: bool = True, **condition: str) -> Object:
    conditions = [{"type": "Other", "status": "False", "message": "else"}, *([condition] if condition else [])]
    return {"metadata": {"name": "job-w"}, "spec": {"active": active}, "status": {"conditions": conditions}}


UNDER_WAY = {
    "nothing": Case(None, Verdict("Pending", "Created")),
    "suspended from the start": Case(
        None, Verdict("Suspended", "Suspended", "spec.suspend is true"), spec={"suspend": True}
    ),
    "refused": Case(
        None,
        Verdict("Pending", "UnknownNodePool", "no such pool"),
        error=RayJobError("UnknownNodePool", "no such pool"),
    ),
    "no status yet": Case({"metadata": {"name": "job"}, "spec": {}}, Verdict("Pending", "Created")),
    "starting": Case(ray_job("Initializing"), Verdict("Pending", "PodsStarting")),
    "pods": Case(ray_job("Running"), Verdict("Starting", "PodsReady", "waiting for the driver to start")),
    "pods of a retry": Case(
        ray_job("Running", failed=1), Verdict("Retrying", "PodsReady", "waiting for the driver to start")
    ),
    "a submitter that fails": Case(
        ray_job("Running"),
        Verdict("Starting", "PodsReady", "waiting for the driver to start; the submitter pod failed: no head"),
        pods=(submitter(1, "no head"),),
    ),
    "finishing": Case(ray_job("Running", "SUCCEEDED"), Verdict("Running", "Finishing")),
    "finishing a failure": Case(
        ray_job("Running", "FAILED", message="exit code 1"), Verdict("Running", "Finishing", "exit code 1")
    ),
    "finishing a worker's failure": Case(
        ray_job("Running", "FAILED"),
        Verdict("Running", "Finishing", "worker 1 failed: ValueError: no"),
        status(training=failed(1, "ValueError", "no")),
    ),
    "a killed driver is finishing": Case(
        ray_job("Running", "FAILED", message="gone"),
        Verdict("Running", "Finishing", f"{KILLED}gone"),
        pods=(OUT_OF_MEMORY,),
    ),
    "finishing, stopped": Case(ray_job("Running", "STOPPED", message="x"), Verdict("Running", "Finishing")),
    "retrying": Case(
        ray_job("Retrying", "FAILED", reason="AppFailed", message="exit code 1"),
        Verdict("Retrying", "AppFailed", "exit code 1"),
    ),
    "retrying, without a reason": Case(
        ray_job("Retrying", "FAILED", message="why"), Verdict("Retrying", "Failed", "why")
    ),
    "retrying after a worker's failure": Case(
        ray_job("Retrying", "FAILED"),
        Verdict("Retrying", "Failed", "worker 1 failed: ValueError: no"),
        status(training=failed(1, "ValueError", "no")),
    ),
    "retrying after memory": Case(
        ray_job("Retrying", "FAILED", message="gone"),
        Verdict("Retrying", "Failed", f"{KILLED}gone"),
        pods=(OUT_OF_MEMORY,),
    ),
    "the next attempt": Case(
        ray_job("Initializing", failed=1),
        Verdict("Retrying", "PodsStarting", "an attempt failed; the next attempt is starting"),
    ),
    "the next attempt, told why": Case(
        ray_job("Initializing", failed=1),
        Verdict("Retrying", "PodsStarting", "worker 1 failed; the next attempt is starting"),
        status("Finishing", message="worker 1 failed"),
    ),
    "the next attempt, told again": Case(
        ray_job("Initializing", failed=2),
        Verdict("Retrying", "PodsStarting", "worker 1 failed; the next attempt is starting"),
        status("PodsStarting", "Retrying", "worker 1 failed; the next attempt is starting; cannot read pods"),
    ),
    "the next attempt, after a wait": Case(
        ray_job("Initializing", failed=2),
        Verdict("Retrying", "PodsStarting", "an attempt failed; the next attempt is starting"),
        status("ImagePullBackOff", "Retrying", "no image", waiting=[WAITING]),
    ),
    "the next attempt, after training": Case(
        ray_job("Initializing", failed=1),
        Verdict("Retrying", "PodsStarting", "an attempt failed; the next attempt is starting"),
        status("Training", message="something"),
    ),
    "head lost": Case(
        ray_job("Running", "RUNNING"),
        Verdict("Retrying", "HeadLost", "the head pod was lost; the driver will continue from the latest checkpoint"),
        status("Training"),
        pods=(head(phase="Failed"),),
    ),
    "head lost before it was seen": Case(
        ray_job("Running"),
        Verdict(
            "Retrying",
            "HeadLost",
            "the head pod ran out of memory; the driver will continue from the latest checkpoint",
        ),
        status("HeadLost"),
        pods=(head(phase="Failed", state={"terminated": {"reason": "OOMKilled"}}),),
    ),
    "no head yet": Case(
        ray_job("Running"),
        Verdict("Starting", "PodsReady", "waiting for the driver to start"),
        status("PodsStarting"),
        pods=(head(phase="Pending"),),
    ),
    "another attempt's head": Case(
        ray_job("Running", "RUNNING"),
        Verdict("Running", "Training"),
        status("Training"),
        pods=(head(labels=OTHER_HEAD, phase="Failed"),),
    ),
    "resuming": Case(ray_job("Suspended"), Verdict("Pending", "Resuming")),
}

HELD_UP = {
    "deleting": Case(
        deleted(ray_job("Running", "RUNNING"), finalizers=["a/b", "c"]),
        Verdict(
            "Pending",
            "RayJobDeleting",
            f"{DELETION}; its deletion waits for finalizers: a/b, c",
        ),
    ),
    "deleting, with another error": Case(
        deleted(ray_job("Running")),
        Verdict(
            "Pending",
            "RayJobDeleting",
            DELETION,
        ),
        error=RayJobError("Other", "else"),
    ),
    "deleting with its TrainJob": Case(
        deleted(ray_job("Running")), Verdict("Pending", DELETING), error=RayJobError(DELETING, "")
    ),
    "suspended": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Suspended", "Suspended", "spec.suspend is true"),
        spec={"suspend": True},
    ),
    "suspended, not seen by KubeRay": Case(
        ray_job("Running"), Verdict("Suspended", "Suspended", "spec.suspend is true"), spec={"suspend": True}
    ),
    "suspending": Case(
        ray_job("Suspending", suspend=True),
        Verdict("Running", "Suspending", "pods that KubeRay has not deleted yet: 2"),
        status("Training"),
        pods=(head(), pod(), pod("done", phase="Succeeded"), pod("broken", phase="Failed")),
        spec={"suspend": True},
    ),
    **{
        f"suspending while {phase}": Case(
            ray_job("Suspending", suspend=True),
            Verdict(phase, "Suspending", "pods that KubeRay has not deleted yet: 1"),
            status(phase=phase),
            pods=(pod(),),
            spec={"suspend": True},
        )
        for phase in ("Starting", "Retrying")
    },
    "suspending before it ran": Case(
        ray_job("Suspending", suspend=True),
        Verdict("Pending", "Suspending", "pods that KubeRay has not deleted yet: 1"),
        status("Queued", "Suspended"),
        pods=(pod(labels={}),),
        spec={"suspend": True},
    ),
    "pods of a RayCluster that KubeRay has forgotten": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Pending", "Suspending", "pods that KubeRay has not deleted yet: 1"),
        pods=(head(labels=OTHER_HEAD),),
        spec={"suspend": True},
    ),
    "suspended by a stranger": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Suspended", "Queued", "the RayJob is suspended by another controller"),
    ),
    "queued": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Suspended", "Queued", "waits in the queue gpus"),
        metadata=QUEUE,
        workloads=(workload(), workload(type="Admitted", status="True", message="yes"), {"metadata": {"name": "new"}}),
    ),
    "deactivated": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Suspended", "Queued", "the Workload job-w is deactivated: its spec.active is false"),
        metadata=QUEUE,
        workloads=(workload(active=False),),
    ),
    **{
        f"{kind} is false": Case(
            ray_job("Suspended", suspend=True),
            Verdict("Suspended", "Queued", "too few GPUs"),
            metadata=QUEUE,
            workloads=(workload(type=kind, status="False", message="too few GPUs"),),
        )
        for kind in ("QuotaReserved", "Admitted")
    },
    "a condition without a message": Case(
        ray_job("Suspended", suspend=True),
        Verdict("Suspended", "Queued"),
        metadata=QUEUE,
        workloads=(workload(type="Admitted", status="False"),),
    ),
    "a queue decides about spec.suspend itself": Case(
        ray_job("Running", "RUNNING"), Verdict("Running", "Training"), metadata=QUEUE, spec={"suspend": True}
    ),
}


@pytest.mark.parametrize("case", (UNDER_WAY | HELD_UP).values(), ids=list(UNDER_WAY | HELD_UP))
def test_the_whole_verdict(case: Case):
    case.check()
