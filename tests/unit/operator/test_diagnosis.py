from typing import Any

import pytest
from operator_objects import Object, container, pod

from trainjob.api.status_reasons import explanation
from trainjob_operator.diagnosis import EXPLAINING_EVENTS, diagnose

NO_ROOM = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."
NOT_PULLED = 'Back-off pulling image "typo:1"'


def unscheduled(reason: str = "Unschedulable", message: str = NO_ROOM) -> list[Object]:
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]


def event(of: str, reason: str, message: str = "in the cluster's words") -> Object:
    return {"involvedObject": {"uid": f"uid-of-{of}"}, "reason": reason, "message": message}


def found(pods: list[Object], cluster: Object | None = None, events: list[Object] | None = None) -> list[Any]:
    return [(item.reason, item.pods, item.message) for item in diagnose(pods, cluster, events or [])]


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        ({"conditions": unscheduled()}, "Unschedulable", NO_ROOM),
        ({"conditions": unscheduled("SchedulingGated", "gated")}, "SchedulingGated", "gated"),
        (
            {"containerStatuses": [container(reason="ImagePullBackOff", message=NOT_PULLED)]},
            "ImagePullBackOff",
            f"container ray-worker: {NOT_PULLED}",
        ),
        (
            {
                "initContainerStatuses": [container("wait-gcs-ready", "ErrImagePull", "not found")],
                "containerStatuses": [container(reason="PodInitializing")],
            },
            "ErrImagePull",
            "container wait-gcs-ready: not found",
        ),
        (
            {"containerStatuses": [container(reason="InvalidImageName", message="couldn't parse image name")]},
            "InvalidImageName",
            "container ray-worker: couldn't parse image name",
        ),
        (
            {"containerStatuses": [container(reason="CreateContainerConfigError", message='secret "minio" not found')]},
            "CreateContainerConfigError",
            'container ray-worker: secret "minio" not found',
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container(
                        reason="CrashLoopBackOff",
                        message="back-off 10s restarting failed container",
                        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    )
                ],
            },
            "CrashLoopBackOff",
            "container ray-worker: back-off 10s restarting failed container (last exit code 137, OOMKilled)",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container(
                        reason="CrashLoopBackOff",
                        message="back-off 10s",
                        lastState={
                            "terminated": {"exitCode": 1, "reason": "Error", "message": "Ray starts\nno port\n"}
                        },
                    )
                ],
            },
            "CrashLoopBackOff",
            "container ray-worker: back-off 10s (last exit code 1, Error: no port)",
        ),
    ],
)
def test_a_pods_own_status_tells_why_it_waits(status: Object, reason: str, message: str):
    assert found([pod(**status)]) == [(reason, 1, message)]


@pytest.mark.parametrize(
    "waiting",
    [
        pod(),
        pod(conditions=[{"type": "PodScheduled", "status": "True"}]),
        pod(containerStatuses=[container(reason="ContainerCreating")]),
        pod(initContainerStatuses=[container(reason="PodInitializing")]),
        pod(containerStatuses=[container()]),
        pod(phase="Running", containerStatuses=[{"name": "ray-worker", "state": {"running": {}}}]),
        pod(phase="Succeeded", conditions=unscheduled()),
        pod(phase="Failed", containerStatuses=[container(reason="ErrImagePull")]),
    ],
)
def test_pods_that_are_on_their_way_running_or_done_wait_for_nothing(waiting: Object):
    assert found([waiting], {"conditions": []}, [event("worker", "Scheduled"), event("worker", "Pulling")]) == []


def test_a_pod_that_is_being_deleted_waits_for_nothing():
    leaving = pod(conditions=unscheduled())
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert found([leaving]) == []


def lost(**metadata: Any) -> Object:
    """A pod as the control plane leaves it when its node has stopped answering."""
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    found = pod(node="n1", phase="Running", conditions=conditions)
    found["metadata"] |= metadata
    return found


@pytest.mark.parametrize("metadata", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_a_pod_on_a_node_that_does_not_answer_is_named_with_it(metadata: Object):
    [(reason, pods, message)] = found([lost(**metadata)])
    assert (reason, pods) == ("NodeLost", 1)
    assert message.startswith("node n1 of pod worker does not respond")


def test_of_a_lost_node_only_ray_s_pods_are_waited_for():
    assert found([lost(labels={"job-name": "job"})]) == []


def test_a_pod_whose_readiness_gate_is_closed_is_not_lost():
    gated = lost()
    gated["status"]["conditions"][0]["reason"] = "ReadinessGatesNotReady"
    assert found([gated]) == []


@pytest.mark.parametrize("reason", ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"])
def test_an_event_tells_what_the_pods_status_does_not(reason: str):
    waiting = pod(node="n1", containerStatuses=[container(reason="ContainerCreating")])
    events = [event("worker", "Scheduled"), event("worker", reason), event("other", "FailedMount")]
    assert found([waiting], None, events) == [(reason, 1, "in the cluster's words")]


def test_a_pods_own_status_comes_before_its_events():
    waiting = pod(node="n1", containerStatuses=[container(reason="ErrImagePull", message="no")])
    assert [reason for reason, *_ in found([waiting], None, [event("worker", "FailedMount")])] == ["ErrImagePull"]


def test_a_running_pod_waits_for_nothing_that_an_old_event_says():
    assert found([pod(node="n1", phase="Running")], None, [event("worker", "FailedMount")]) == []


FORBIDDEN = 'pods "job-abcde-head" is forbidden: '


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            FORBIDDEN + "exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: 0, limited: 4",
            "QuotaExceeded",
        ),
        (
            FORBIDDEN + 'error looking up service account team/trainer: serviceaccount "trainer" not found',
            "ServiceAccountMissing",
        ),
        ('admission webhook "policy.example.com" denied the request: no', "AdmissionDenied"),
        (
            FORBIDDEN + 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
            "PodSecurityViolation",
        ),
        ("the API server said something else", "FailedCreateHeadPod"),
    ],
)
def test_kuberays_condition_tells_why_pods_could_not_be_made(message: str, reason: str):
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateHeadPod", "message": message}
    ready = {"type": "HeadPodReady", "status": "False", "reason": "HeadPodNotFound"}
    assert found([], {"conditions": [ready, condition]}) == [(reason, 0, message)]


def test_a_refusal_that_is_over_counts_no_more():
    assert found([], {"conditions": [{"type": "ReplicaFailure", "status": "False", "reason": "x"}]}) == []


def test_alike_pods_are_counted_and_the_most_come_first():
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    pods = [
        pod("a", containerStatuses=[container(reason="ErrImagePull", message="no")]),
        pod("b", conditions=unscheduled()),
        pod("c", conditions=unscheduled()),
        pod("d", conditions=unscheduled(message="0/5 nodes are available: 5 Insufficient memory.")),
        pod("e"),
    ]
    reasons = [(reason, number) for reason, number, _ in found(pods, {"conditions": [refused]})]
    assert reasons == [("Unschedulable", 3), ("ErrImagePull", 1), ("QuotaExceeded", 0)]
    assert found(pods[::-1], {"conditions": [refused]}) == found(pods, {"conditions": [refused]})


def test_of_several_messages_that_of_most_pods_is_told():
    rare, common = "0/5 nodes are available: 5 Insufficient memory.", "0/5 nodes are available: 5 Insufficient cpu."
    pods = [
        pod(name, conditions=unscheduled(message=text))
        for name, text in zip("abc", (rare, common, common), strict=True)
    ]
    assert found(pods) == [("Unschedulable", 3, common)]


def test_1500_pods_that_crash_make_a_short_list():
    crashing = [
        pod(str(number), containerStatuses=[container(reason="CrashLoopBackOff", message=f"pod {number}" + "x" * 1000)])
        for number in range(1500)
    ]
    assert [(reason, number) for reason, number, _ in found(crashing)] == [("CrashLoopBackOff", 1500)]
    odd = [pod(str(number), conditions=unscheduled(reason=f"Odd{number:04}")) for number in range(1500)]
    assert len(found(odd)) == 10


def test_long_messages_are_cut():
    [(_, _, message)] = found([pod(conditions=unscheduled(message="x" * 5000))])
    assert message == "x" * 1024


def test_each_event_that_explains_a_wait_has_an_explanation_for_users():
    assert [reason for reason in EXPLAINING_EVENTS if explanation(reason) is None] == []
