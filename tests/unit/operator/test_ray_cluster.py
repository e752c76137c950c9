"""How a RayJob has Ray started in its pods, and what of it may be changed later."""

import json
from typing import Any

from operator_objects import UID, Object, trainjob

from trainjob_operator.render import changeable, render
from trainjob_operator.settings import Settings


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
    assert changeable(job, Settings(image="i")) == {
        "metadata": {
            "labels": {"trainjob.dev/uid": UID},
            "annotations": {"trainjob.dev/name": "job"},
        },
        "spec": {"backoffLimit": 3, "suspend": True, "preRunningDeadlineSeconds": 60},
    }
