"""RayJobs as they are rendered with four node pools, and what the tests look at in them."""

from typing import Any

import pytest
from operator_objects import Object

from trainjob.api import TrainJob
from trainjob_operator.render import render
from trainjob_operator.settings import Settings

POOLS: Object = {
    "a100": {
        "nodeSelector": {"gpu": "a100", "disk": "ssd"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "gpusPerNode": 8,
        "runtimeClassName": "nvidia",
        "priorityClassName": "training",
        "affinity": {"podAffinity": {}},
        "pod": {"schedulerName": "packing", "hostIPC": False},
    },
    "mi300": {"gpuResource": "amd.com/gpu", "gpusPerNode": 8},
    "slices": {"gpuResource": "nvidia.com/mig-3g.40gb"},
    "cpu": {"nodeSelector": {"pool": "cpu"}},
}


EVERY_POD = pytest.mark.parametrize("which", ["head", "worker", "submitter"])


def operator_settings(**more: Any) -> Settings:
    return Settings.model_validate({"image": "trainjob:1.0", "nodePools": POOLS, **more})


def rendered(job: TrainJob, **more: Any) -> Object:
    return render(job, operator_settings(**more))


def worker_group(ray_job: Object) -> Object:
    [group] = ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return group


def worker_pod(ray_job: Object) -> Object:
    return worker_group(ray_job)["template"]["spec"]


def pod_templates(ray_job: Object) -> dict[str, Object]:
    cluster = ray_job["spec"]["rayClusterSpec"]
    return {
        "head": cluster["headGroupSpec"]["template"],
        "worker": cluster["workerGroupSpecs"][0]["template"],
        "submitter": ray_job["spec"]["submitterPodTemplate"],
    }


def snapshot(ray_job: Object) -> str:
    head = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    return head["metadata"]["annotations"]["trainjob.dev/trainjob"]
