"""The RayCluster of a RayJob: how Ray starts, and which fields may change later."""

import json
from typing import Any

import pytest
from operator_objects import UID, Object, trainjob

from trainjob_operator.drift import has_drifted
from trainjob_operator.network_policy import network_policy, recorded_network
from trainjob_operator.render import mutable_fields, render
from trainjob_operator.settings import NetworkSettings, Settings


def ray_job(spec: Object | None = None, **settings: Any) -> Object:
    return render(trainjob(**(spec or {})), Settings.model_validate({"image": "trainjob:1.0", **settings}))


def test_the_head_offers_nothing_to_training():
    head = ray_job(defaults={"head": {"cpus": 0.5, "memory": "2Gi"}})["spec"]["rayClusterSpec"]["headGroupSpec"]
    assert head["rayStartParams"] == {
        "include-log-monitor": "0",
        "num-cpus": "0",
        "num-gpus": "0",
        "dashboard-host": "0.0.0.0",
    }
    assert head["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "2Gi"}


def test_the_workers_offer_places_for_workers():
    workers = {"count": 4, "gpus": 1, "perPod": 2, "nodePool": "big"}
    cluster = ray_job({"workers": workers}, nodePools={"big": {"gpusPerNode": 4}})["spec"]["rayClusterSpec"]
    [group] = cluster["workerGroupSpecs"]
    assert group["groupName"] == "workers"
    assert json.dumps([group[name] for name in ("replicas", "minReplicas", "maxReplicas")]) == "[2, 2, 2]"
    assert group["rayStartParams"].keys() == {"include-log-monitor", "num-cpus", "num-gpus", "resources"}
    assert group["rayStartParams"]["num-gpus"] == "2"
    # KubeRay puts the value on a shell's command line as it is
    assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {"trainjob_worker": 2}


def test_an_elastic_job_has_fewer_pods_at_least():
    workers = {"count": 6, "minimum": 3, "perPod": 2}
    [group] = ray_job({"workers": workers})["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert json.dumps([group[name] for name in ("replicas", "minReplicas", "maxReplicas")]) == "[3, 2, 3]"


def test_of_a_rayjob_that_exists_only_its_course_and_its_names_are_changed():
    pool = {"nodePool": "removed"}
    job = trainjob(retries=3, suspend=True, deadlines={"start": "1m"}, workers=pool)
    assert mutable_fields(job, {"metadata": {}}) == {
        "metadata": {
            "labels": {"trainjob.dev/uid": UID},
            "annotations": {"trainjob.dev/name": "job"},
        },
        "spec": {"backoffLimit": 3, "suspend": True, "preRunningDeadlineSeconds": 60},
    }


@pytest.mark.parametrize("start", [None, "30m"])
def test_a_rayjob_keeps_the_default_deadline_that_it_was_made_with(start: str | None):
    """Whatever the settings of the operator that looks at it: two operators would write it in turns."""
    without, settings = trainjob(), Settings.model_validate({"image": "i", "defaults": {"startDeadline": start}})
    made = render(without, settings)
    assert not has_drifted(made, mutable_fields(without, made))
    longer = trainjob(deadlines={"start": "1h"})
    assert mutable_fields(longer, made)["spec"]["preRunningDeadlineSeconds"] == 3600
    # one that the user has removed again gives way to the default, or to none
    changed = render(longer, settings)
    assert mutable_fields(without, changed)["spec"]["preRunningDeadlineSeconds"] == (1800 if start else None)


def test_a_rayjob_of_an_older_version_keeps_its_deadline():
    made = render(trainjob(), Settings.model_validate({"image": "i", "defaults": {"startDeadline": "30m"}}))
    del made["metadata"]["annotations"]["trainjob.dev/default-start-deadline"]
    assert "preRunningDeadlineSeconds" not in mutable_fields(trainjob(), made)["spec"]


@pytest.mark.parametrize(
    "network", [NetworkSettings(), NetworkSettings(kuberay_namespace="ray", kuberay_labels={"app": "kuberay"})]
)
def test_a_network_policy_tells_the_settings_that_it_was_made_with(network: NetworkSettings):
    policy = network_policy(trainjob(), network)
    kept = recorded_network(policy)
    assert kept is not None
    assert network_policy(trainjob(), kept) == policy


@pytest.mark.parametrize("written", [None, "", "{", '{"kuberayNamespace": 1}'])
def test_a_network_policy_that_does_not_tell_its_settings_is_made_with_those_there_are(written: str | None):
    policy = network_policy(trainjob(), NetworkSettings())
    policy["metadata"]["annotations"]["trainjob.dev/network"] = written
    assert recorded_network(policy if written is not None else {"metadata": {}}) is None
