"""CPU limits, schedulers and service links of a job's pods."""

import pytest
from operator_objects import trainjob
from rendering import EVERY_POD, pod_templates, rendered

from trainjob_operator.errors import RayJobError


@EVERY_POD
@pytest.mark.parametrize(
    ("setting", "asked", "is_limited"),
    [(False, None, False), (True, None, True), (False, True, True), (True, False, False)],
)
def test_a_cpu_limit_equals_the_request_where_one_is_asked_for(
    which: str, setting: bool, asked: bool | None, is_limited: bool
):
    pods = {} if asked is None else {"cpuLimits": asked}
    job = trainjob(pods=pods, workers={"count": 2, "gpus": 1, "cpus": 1.5})
    spec = pod_templates(rendered(job, defaults={"cpuLimits": setting}))[which]["spec"]
    for container in spec["containers"]:
        resources = container["resources"]
        limits, cpu = resources["limits"], resources["requests"]["cpu"]
        assert limits.get("cpu") == (cpu if is_limited else None)
        assert limits["memory"] == resources["requests"]["memory"]


@EVERY_POD
def test_services_are_not_in_the_environment(which: str):
    assert pod_templates(rendered(trainjob()))[which]["spec"]["enableServiceLinks"] is False


def test_a_pool_may_have_services_in_the_environment():
    pools = {"links": {"pod": {"enableServiceLinks": True}}}
    templates = pod_templates(rendered(trainjob(workers={"nodePool": "links"}), nodePools=pools))
    links = {which: template["spec"]["enableServiceLinks"] for which, template in templates.items()}
    assert links == {"head": False, "worker": True, "submitter": False}


@EVERY_POD
def test_a_job_names_the_scheduler_of_all_its_pods(which: str):
    assert "schedulerName" not in pod_templates(rendered(trainjob()))[which]["spec"]
    job = trainjob(pods={"schedulerName": "volcano"})
    assert pod_templates(rendered(job))[which]["spec"]["schedulerName"] == "volcano"
    same = trainjob(pods={"schedulerName": "packing"}, workers={"nodePool": "a100"})
    assert pod_templates(rendered(same))[which]["spec"]["schedulerName"] == "packing"


def test_a_job_may_not_name_another_scheduler_than_its_pools():
    job = trainjob(pods={"schedulerName": "volcano"}, workers={"nodePool": "a100"})
    with pytest.raises(RayJobError, match=r"spec\.pods\.schedulerName: the pool a100 has the scheduler packing"):
        rendered(job)
