"""What nodes, quotas and a queue leave for a TrainJob."""

from typing import Any

import pytest

from trainjob.doctor.quotas import queue_finding, quota_findings
from trainjob.doctor.room import free_amounts, most_pods

GIB = 2**30


def pod(**requests: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"requests": requests}}, {}]}}


def test_a_node_has_what_its_pods_leave():
    node = {"status": {"allocatable": {"cpu": "7900m", "memory": "32Gi", "nvidia.com/gpu": "8"}}}
    pods = [pod(cpu="900m", memory="1Gi"), pod(**{"cpu": "1", "nvidia.com/gpu": "3"})]
    free = free_amounts(node, pods)
    assert free == pytest.approx({"cpu": 6, "memory": 31 * GIB, "nvidia.com/gpu": 5})
    assert most_pods(free, {"cpu": 1.5, "nvidia.com/gpu": 2}) == 2
    assert most_pods(free, {"cpu": 1.5, "memory": GIB}) == 4
    assert most_pods(free, {"cpu": 1, "amd.com/gpu": 1}) == 0
    assert most_pods(free_amounts(node, [pod(cpu="9")]), {"cpu": 1}) == 0


def test_a_quota_must_leave_enough_of_each_resource():
    def found(hard: dict[str, str], used: dict[str, str], **spec: Any) -> list[tuple[str, str]]:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}, "status": {"used": used}}
        needs = {"requests.memory": 10 * GIB, "requests.nvidia.com/gpu": 4, "pods": 3, "limits.cpu": 0}
        return [(each.state, each.message) for each in quota_findings([quota], needs)]

    gpus = "requests.nvidia.com/gpu"
    assert found({gpus: "8"}, {gpus: "4"}) == [("ok", "requests.nvidia.com/gpu 4 of 8 used, needs 4")]
    assert found({gpus: "8", "pods": "9"}, {gpus: "5"})[0][0] == "wrong"
    assert found({"requests.memory": "16Gi"}, {"requests.memory": "8Gi"}) == [
        ("wrong", "requests.memory 8Gi of 16Gi used, needs 10Gi")
    ]
    assert found({"count/secrets": "1"}, {}) == []
    assert found({"limits.cpu": "9"}, {}) == [("wrong", "it limits limits.cpu, and the pods have no CPU limit")]
    assert found({gpus: "1"}, {}, scopes=["BestEffort"])[0][0] == "unknown"


@pytest.mark.parametrize(
    ("needed", "cohort", "state", "said"),
    [
        (2, None, "ok", "a100: nvidia.com/gpu 6 of 8 reserved"),
        (4, None, "ok", "h100: nvidia.com/gpu 0 of 4 reserved"),
        (6, None, "wrong", "the job would wait"),
        (9, None, "wrong", "more than its quota, so the job would wait for ever"),
        (9, "all", "unknown", "it may borrow from all"),
    ],
)
def test_a_queue_has_room_if_one_flavor_has(needed: int, cohort: str | None, state: str, said: str):
    def flavor(name: str, gpus: str) -> dict[str, Any]:
        return {"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}

    group = {"coveredResources": ["nvidia.com/gpu", "rdma/hca"], "flavors": [flavor("a100", "8"), flavor("h100", "4")]}
    reserved = [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "6"}]}]
    queue = {
        "spec": {"resourceGroups": [group], **({"cohortName": cohort} if cohort else {})},
        "status": {"flavorsReservation": reserved},
    }
    finding = queue_finding("queue q", "1 jobs run, 0 wait", queue, {"cpu": 3, "nvidia.com/gpu": needed})
    assert finding.state == state
    assert said in finding.message
    assert finding.message.startswith("1 jobs run, 0 wait; ")
