"""TrainJob → RayJob."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from operator_objects import UID, Object, document, trainjob
from rendering import POOLS, rendered, snapshot, worker_group, worker_pod

from trainjob.api.defaults import with_defaults
from trainjob.api.load import load_trainjob
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import DIGEST_ANNOTATION
from trainjob_operator.render import render
from trainjob_operator.settings import Settings


@pytest.mark.parametrize(
    ("workers", "replicas", "per_pod"),
    [
        ({"count": 1}, 1, 1),
        ({"count": 6}, 6, 1),
        ({"count": 6, "perPod": 3}, 2, 3),
        ({"count": 16, "nodePool": "a100"}, 16, 1),
        ({"count": 16, "gpus": 1}, 16, 1),
        ({"count": 16, "gpus": 1, "nodePool": "a100"}, 2, 8),
        ({"count": 4, "gpus": 1, "nodePool": "a100"}, 1, 4),
        ({"count": 12, "gpus": 1, "nodePool": "a100"}, 2, 6),
        ({"count": 9, "gpus": 1, "nodePool": "a100"}, 3, 3),
        ({"count": 11, "gpus": 1, "nodePool": "a100"}, 11, 1),
        ({"count": 16, "gpus": 1, "nodePool": "a100", "perPod": 2}, 8, 2),
        ({"count": 8, "gpus": 1, "nodePool": "slices"}, 8, 1),
    ],
)
def test_workers_share_pods_as_they_share_a_nodes_gpus(workers: Object, replicas: int, per_pod: int):
    group = worker_group(rendered(trainjob(workers=workers)))
    assert [group[name] for name in ("replicas", "minReplicas", "maxReplicas")] == [replicas] * 3
    assert group["template"]["metadata"]["annotations"]["trainjob.dev/workers"] == str(per_pod)


def test_workers_with_a_slice_of_a_gpu_share_no_pod():
    with pytest.raises(RayJobError, match=r"spec.workers.perPod: must be 1 in node pool slices"):
        rendered(trainjob(workers={"count": 4, "gpus": 1, "nodePool": "slices", "perPod": 2}))
    with pytest.raises(ValueError, match=r"gpusPerNode.*must be 1 for slices"):
        Settings.model_validate(
            {"image": "x", "nodePools": {"a": {"gpuResource": "nvidia.com/mig-1g.5gb", "gpusPerNode": 2}}}
        )


@pytest.mark.parametrize(
    ("pool", "resource", "number"),
    [
        ("a100", "nvidia.com/gpu", "8"),
        ("mi300", "amd.com/gpu", "8"),
        ("slices", "nvidia.com/mig-3g.40gb", "1"),
    ],
)
def test_gpus_are_asked_for_by_the_pools_name_for_them(pool: str, resource: str, number: str):
    group = worker_group(rendered(trainjob(workers={"count": 8, "gpus": 1, "nodePool": pool})))
    [container] = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": f"{4 * int(number)}Gi", resource: number}
    assert container["resources"]["requests"] == container["resources"]["limits"] | {"cpu": f"{int(number) + 1}"}
    assert {"num-cpus": str(int(number) + 1), "num-gpus": number}.items() <= group["rayStartParams"].items()


@pytest.mark.parametrize(
    ("workers", "defaults", "cpu", "memory", "ray_cpus"),
    [
        ({}, {}, "2", "4Gi", 2),
        ({"cpus": 0.25}, {}, "1250m", "4Gi", 2),
        ({"cpus": 2.5, "memory": "500M"}, {}, "3500m", "500M", 3),
        ({"count": 4, "perPod": 4, "cpus": 3, "memory": "12Gi"}, {}, "13", "48Gi", 13),
        ({"count": 4, "perPod": 2}, {"workerCpus": 2, "workerMemory": "8G", "dataCpus": 3}, "7", "16G", 7),
        ({"memory": 1000000000}, {}, "2", "1G", 2),
        ({"memory": "1024Mi"}, {}, "2", "1Gi", 2),
        ({"memory": "1.5Gi", "cpus": "500m"}, {}, "1500m", "1536Mi", 2),
        ({"count": 2, "perPod": 2, "memory": "1.5Gi", "cpus": "1"}, {}, "3", "3Gi", 3),
    ],
)
def test_a_worker_pod_has_what_its_workers_ask_for_and_cpu_for_ray_data(
    workers: Object, defaults: Object, cpu: str, memory: str, ray_cpus: int
):
    group = worker_group(rendered(trainjob(workers=workers), defaults=defaults))
    [container] = group["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
    assert {"num-cpus": str(ray_cpus), "num-gpus": "0"}.items() <= group["rayStartParams"].items()


@pytest.mark.parametrize(
    ("head", "cpu", "memory"),
    [
        ({}, "500m", "2Gi"),
        ({"memory": "16Gi"}, "500m", "16Gi"),
        ({"cpus": 4}, "4", "2Gi"),
        ({"cpus": 1.5, "memory": "8G"}, "1500m", "8G"),
    ],
)
def test_a_job_may_have_a_larger_head(head: Object, cpu: str, memory: str):
    ray_job = rendered(trainjob(head=head), defaults={"head": {"cpus": 0.5, "memory": "2Gi"}})
    pod = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
    assert pod["containers"][0]["resources"] == resources
    assert "head" not in yaml.safe_load(snapshot(ray_job))["spec"]


def test_workers_run_where_their_pool_is():
    pods = {
        "nodeSelector": {"zone": "b", "disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    }
    job = trainjob(workers={"count": 8, "gpus": 1, "nodePool": "a100"}, pods=pods)
    pod = worker_pod(rendered(job))
    assert pod["nodeSelector"] == {"gpu": "a100", "disk": "ssd", "zone": "b"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["nvidia.com/gpu", "spot"]
    assert pod["affinity"] == {"nodeAffinity": {}, "podAffinity": {}}
    assert (pod["runtimeClassName"], pod["priorityClassName"]) == ("nvidia", "training")
    assert (pod["schedulerName"], pod["hostIPC"]) == ("packing", False)
    alone = trainjob(workers={"nodePool": "a100"})
    assert worker_pod(rendered(alone))["affinity"] == {"podAffinity": {}}


def test_the_head_and_the_submitter_need_no_gpu_node():
    spec = rendered(trainjob(workers={"count": 8, "gpus": 1, "nodePool": "a100"}))["spec"]
    for template in (spec["rayClusterSpec"]["headGroupSpec"]["template"], spec["submitterPodTemplate"]):
        assert not {"nodeSelector", "tolerations", "affinity", "runtimeClassName"} & template["spec"].keys()
        assert "nvidia.com/gpu" not in json.dumps(template)


@pytest.mark.parametrize(
    ("pools", "known"), [(POOLS, "a100, cpu, mi300, slices"), ({"only": {}}, "only"), ({}, "none")]
)
def test_an_unknown_pool_is_refused_by_naming_those_there_are(pools: Object, known: str):
    with pytest.raises(RayJobError, match=rf"spec\.workers\.nodePool: .*h100; known pools: {known}$") as error:
        rendered(trainjob(workers={"nodePool": "h100"}), nodePools=pools)
    assert error.value.reason == "UnknownNodePool"


@pytest.mark.parametrize(
    ("labels", "suspend", "expected"),
    [
        ({}, False, {"suspend": False}),
        ({}, True, {"suspend": True}),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, False, {}),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, True, {}),
    ],
)
def test_a_queue_decides_itself_whether_its_job_waits(labels: Object, suspend: bool, expected: Object):
    ray_job = rendered(trainjob({"labels": labels}, suspend=suspend))
    assert {name: value for name, value in ray_job["spec"].items() if name == "suspend"} == expected
    assert labels.items() <= ray_job["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("deadlines", "default", "expected"),
    [({}, None, None), ({"start": "30m"}, None, 1800), ({}, "2h", 7200), ({"start": "45s", "total": "1d"}, "2h", 45)],
)
def test_the_start_deadline_is_kuberays_and_the_total_one_is_not(deadlines: Object, default: str, expected: int):
    spec = rendered(trainjob(deadlines=deadlines), defaults={"startDeadline": default})["spec"]
    assert spec.get("preRunningDeadlineSeconds") == expected
    assert "activeDeadlineSeconds" not in spec


def test_the_rayjob_belongs_to_its_trainjob():
    ray_job = rendered(trainjob({"name": "bert.v1"}, retries=3))
    assert ray_job["metadata"]["name"].startswith("tj-bert-v1-")
    assert ray_job["metadata"]["namespace"] == "team"
    [owner] = ray_job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("TrainJob", "bert.v1", UID, True)
    assert ray_job["metadata"]["labels"]["trainjob.dev/uid"] == UID
    assert ray_job["metadata"]["annotations"]["trainjob.dev/name"] == "bert.v1"
    assert ray_job["spec"]["backoffLimit"] == 3
    assert ray_job["spec"]["rayClusterSpec"]["rayVersion"] == "2.60.0"


@pytest.mark.parametrize(
    ("training", "limit"),
    [
        (None, 3),
        (TrainingStatus(stage="Training"), 3),
        (TrainingStatus(failure=Failure(exception="OSError", message="", retryable=True)), 3),
        (TrainingStatus(failure=Failure(exception="UserError", message="", retryable=False)), 0),
    ],
)
def test_a_training_that_has_failed_for_good_is_not_started_again(training: TrainingStatus | None, limit: int):
    ray_job = render(trainjob(retries=3), Settings(image="i"), training)
    assert ray_job["spec"]["backoffLimit"] == limit


def test_rayjobs_of_other_settings_are_told_apart():
    def annotation(**more: Any) -> str:
        return rendered(trainjob(), **more)["metadata"]["annotations"][DIGEST_ANNOTATION]

    assert annotation() == annotation()
    assert len({annotation(), annotation(image="trainjob:1.1"), annotation(defaults={"dataCpus": 2})}) == 3


def test_the_snapshot_is_the_trainjob_without_what_only_a_cluster_needs(tmp_path: Path):
    spec = document(
        dataset={"train": {"uri": "s3://data/a.csv"}, "text": ["Überschrift"], "label": "Etikett"},
        model={"textClassifier": {"pretrained": "prajjwal1/bert-tiny"}},
        training={"batchSize": 64, "optimizer": {"adam": {"learningRate": 1e-05}}},
        storage={"uri": "s3://runs", "endpoint": "http://minio:9000", "secretName": "minio"},
        workers={"count": 2, "cpus": 3},
        retries=3,
    )["spec"]
    only_in_a_cluster = {
        "pods": {"env": [{"name": "TOKEN", "value": "x"}]},
        "deadlines": {"total": "1d"},
        "ttlAfterFinished": "7d",
        "rayJobTTLAfterFinished": "1h",
        "suspend": True,
    }
    ray_job = rendered(trainjob({"labels": {"a": "b"}, "annotations": {"c": "d"}}, **spec, **only_in_a_cluster))
    text = snapshot(ray_job)
    assert yaml.safe_load(text)["spec"] == spec
    assert yaml.safe_load(text)["metadata"] == {"name": "job", "namespace": "team", "uid": UID}
    path = tmp_path / "trainjob.yaml"
    path.write_text(text)
    assert load_trainjob(path) == with_defaults(trainjob(**spec))


def test_the_driver_finds_its_snapshot_where_the_entry_point_says():
    ray_job = rendered(trainjob())
    head = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    [volume] = [volume for volume in head["volumes"] if "downwardAPI" in volume]
    [item] = volume["downwardAPI"]["items"]
    [mount] = [mount for mount in head["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]]
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['trainjob.dev/trainjob']"
    assert ray_job["spec"]["entrypoint"] == f"python -m trainjob run {mount['mountPath']}/{item['path']}"
