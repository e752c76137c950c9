"""From a TrainJob to its RayJob and back to its status, on a real API server with a real KubeRay."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from operator_process import SETTINGS, operator

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually
from trainjob_operator.deadlines import KUBERAY_END_GRACE


@pytest.mark.operated
def test_a_trainjob_becomes_a_rayjob_that_kuberay_takes(jobs: Jobs):
    jobs.create(workers={"count": 2})
    ray_job = jobs.ray_job()
    owner = ray_job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("TrainJob", "job", True)
    status = jobs.until(phase="Pending", reason="PodsStarting")
    assert status["rayJobName"] == "job"
    assert status["workers"] == {"desired": 2, "ready": 0}
    assert status["rayClusterName"].startswith("job-")
    eventually(lambda: jobs.events() == ["Created"])
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 3)
    pods = jobs.cluster.find("pods", jobs.namespace)
    assert {pod["metadata"]["annotations"]["trainjob.dev/name"] for pod in pods} == {"job"}
    (head,) = [pod["metadata"] for pod in pods if pod["metadata"]["labels"].get("ray.io/node-type") == "head"]
    jobs.until(headPodUID=head["uid"])
    jobs.kubectl("delete", "pod", head["name"], "--grace-period=0", "--force")
    eventually(lambda: jobs.status().get("headPodUID") not in (None, head["uid"]))
    assert jobs.status()["rayClusterName"] == status["rayClusterName"]


@pytest.mark.operated
def test_every_pod_meets_the_restricted_level_of_pod_security(jobs: Jobs):
    jobs.cluster.kubectl("label", "namespace", jobs.namespace, "pod-security.kubernetes.io/enforce=restricted")
    jobs.create(workers={"count": 2})
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 3)


@pytest.mark.operated
def test_foreign_changes_are_put_back_and_foreign_labels_left_alone(jobs: Jobs):
    jobs.create()
    jobs.ray_job()
    changes = {"metadata": {"labels": {"theirs": "yes"}}, "spec": {"entrypoint": "true", "backoffLimit": 9}}
    jobs.patch("rayjob", "job", changes)

    def is_back() -> bool:
        ray_job = jobs.ray_job()
        assert ray_job["metadata"]["labels"]["theirs"] == "yes"
        return ray_job["spec"]["entrypoint"].startswith("python") and ray_job["spec"]["backoffLimit"] == 0

    eventually(is_back)
    jobs.patch("rayjob", "job", {"metadata": {"annotations": None}})
    eventually(lambda: "trainjob.dev/name" in jobs.ray_job()["metadata"].get("annotations", {}))
    jobs.patch("rayjob", "job", changes)
    eventually(is_back)


@pytest.mark.operated
def test_what_kuberay_writes_back_is_no_drift(jobs: Jobs):
    jobs.create(workers={"count": 2, "cpus": 1.5})
    jobs.create("function", model={"function": {"name": "train:loop"}}, dataset=None)
    generations = {}
    for name in ("job", "function"):
        jobs.until(name, phase="Pending", reason="PodsStarting")
        generations[name] = jobs.ray_job(name)["metadata"]["generation"]
        jobs.report("rayjob", name, {"message": "look again"})
    jobs.create("next")
    jobs.until("next", phase="Pending", reason="PodsStarting")
    assert {name: jobs.ray_job(name)["metadata"]["generation"] for name in generations} == generations


@pytest.mark.operated
def test_labels_and_annotations_removed_from_a_trainjob_are_removed_from_its_rayjob(jobs: Jobs):
    jobs.create(metadata={"labels": {"team": "a", "stays": "yes"}, "annotations": {"note": "b"}})
    assert jobs.ray_job()["metadata"]["labels"]["team"] == "a"
    assert len(list(_holding(jobs.ray_job(), "team", "note"))) > 3
    jobs.patch("rayjob", "job", {"metadata": {"labels": {"theirs": "yes"}}})
    jobs.patch("trainjob", "job", {"metadata": {"labels": {"team": None}, "annotations": {"note": None}}})
    eventually(lambda: not list(_holding(jobs.ray_job(), "team", "note")), because=lambda: str(jobs.ray_job()))
    labels = jobs.ray_job()["metadata"]["labels"]
    assert (labels["stays"], labels["theirs"]) == ("yes", "yes")
    generation = jobs.ray_job()["metadata"]["generation"]
    jobs.patch("trainjob", "job", {"metadata": {"labels": {"look": "again"}}})
    eventually(lambda: jobs.ray_job()["metadata"]["labels"].get("look"))
    assert jobs.ray_job()["metadata"]["generation"] == generation + 1


@pytest.mark.operated
def test_suspend_at_creation_while_running_and_back(jobs: Jobs):
    jobs.create(suspend=True)
    jobs.until(phase="Suspended")
    assert jobs.cluster.find("pods", jobs.namespace) == []
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 2)
    jobs.until(phase="Pending")
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until(phase="Suspended")
    eventually(lambda: jobs.cluster.find("rayclusters", jobs.namespace) == [])


@pytest.mark.operated
def test_pods_of_a_raycluster_that_kuberay_has_forgotten_are_told(jobs: Jobs):
    """KubeRay creates a RayCluster, and looks for it among those that it knows of when the RayJob is suspended in that
    moment."""
    jobs.create()
    cluster = eventually(lambda: jobs.cluster.find("rayclusters", jobs.namespace))[0]
    forgotten = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "forgotten"}}
    jobs.cluster.put("rayclusters", jobs.namespace, {**forgotten, "spec": cluster["spec"]})
    eventually(lambda: len(jobs.cluster.find("pods", jobs.namespace)) == 4)
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until(reason="Suspending", message="pods that KubeRay has not deleted yet: 2")
    jobs.delete("rayclusters", "forgotten")
    jobs.until(phase="Suspended", reason="Suspended")


@pytest.mark.operated
def test_deleting_a_trainjob_deletes_all_it_made(jobs: Jobs):
    jobs.create()
    eventually(lambda: jobs.cluster.find("pods", jobs.namespace))
    jobs.kubectl("delete", "trainjob", "job")
    for kind in ("rayjobs", "rayclusters", "pods"):
        eventually(lambda kind=kind: jobs.cluster.find(kind, jobs.namespace) == [])


@pytest.mark.operated
@pytest.mark.parametrize("name", ["9-lives", "a.dotted.name", "x" * 47, "x" * 48, "long-" * 40 + "name"])
def test_a_trainjob_may_have_any_name(jobs: Jobs, name: str):
    jobs.create(name)
    ray_job = jobs.until(name, phase="Pending", reason="PodsStarting")["rayJobName"]
    assert len(ray_job) <= 47
    jobs.report("rayjob", ray_job, {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"})
    jobs.until(name, phase="Succeeded")


@pytest.mark.operated
def test_the_total_deadline_ends_a_job_and_its_pods(jobs: Jobs):
    jobs.create(deadlines={"total": "2s"})
    jobs.until(phase="Failed", reason="DeadlineExceeded")
    eventually(lambda: jobs.get("rayjobs") is None)
    eventually(lambda: jobs.cluster.find("pods", jobs.namespace) == [])
    assert jobs.get("rayjobs") is None


@pytest.mark.operated
def test_a_rayjob_that_kuberay_does_not_end_is_deleted(jobs: Jobs):
    jobs.create()
    jobs.until(reason="PodsStarting")
    end = (datetime.now(UTC) - KUBERAY_END_GRACE - timedelta(minutes=1)).isoformat()
    ended = {"phase": "Succeeded", "reason": "Succeeded", "completionTime": end, "training": {"stage": "Finished"}}
    jobs.report("trainjob", "job", ended)
    eventually(lambda: jobs.get("rayjobs") is None, because=lambda: str(jobs.status()))
    eventually(lambda: jobs.cluster.find("pods", jobs.namespace) == [])
    eventually(lambda: "RayJobDeleted" in jobs.events())
    assert jobs.status()["phase"] == "Succeeded"


@pytest.mark.operated
def test_kubectl_waits_and_lists(jobs: Jobs):
    jobs.create()
    jobs.ray_job()
    jobs.report("rayjob", "job", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"})
    jobs.kubectl("wait", "--for=condition=Complete", "tj/job", "--timeout=30s")
    header, row = jobs.kubectl("get", "tj").splitlines()
    assert header.split()[:2] == ["NAME", "PHASE"]
    assert row.split()[:2] == ["job", "Succeeded"]


def test_a_restart_writes_nothing_of_what_is_settled(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    with operator(cluster, tmp_path, [jobs.namespace]) as first:
        jobs.create("done")
        jobs.ray_job("done")
        jobs.report("rayjob", "done", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"})
        jobs.until("done", phase="Succeeded")
        jobs.create("waiting")
        jobs.until("waiting", reason="PodsStarting")
        before = _settled(jobs)
        assert first.stop() == 0
    assert _versions(jobs) == before
    with operator(cluster, tmp_path, [jobs.namespace]) as second:
        eventually(lambda: 'trainjob_reconciles_total{result="success"}' in second.get("/metrics"))
        time.sleep(1)
        assert _versions(jobs) == before
        assert 'trainjob_jobs{namespace="' + jobs.namespace + '",phase="Succeeded"} 1.0' in second.get("/metrics")


def _settled(jobs: Jobs) -> dict[str, str]:
    """Wait until the pods are told in the status, and KubeRay and the operator have written nothing for two seconds."""
    eventually(lambda: jobs.status("waiting").get("headPodUID"))
    before: dict[str, str] = {}
    while (now := _versions(jobs)) != before:
        before = now
        time.sleep(2)
    return before


def _versions(jobs: Jobs) -> dict[str, str]:
    found = json.loads(jobs.kubectl("get", "trainjobs,rayjobs", "--output=json"))["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in found}


def test_other_workers_are_taken_up_though_the_settings_have_changed(jobs: Jobs, tmp_path: Path):
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        jobs.create(suspend=True)
        jobs.until(phase="Suspended")
    other = {**SETTINGS, "image": "registry.example/trainjob:2"}
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=other):
        jobs.patch("trainjobs", "job", {"metadata": {"labels": {"look": "again"}}, "spec": {"retries": 1}})
        eventually(lambda: jobs.ray_job()["spec"]["backoffLimit"] == 1)
        assert _worker_group(jobs)["template"]["spec"]["containers"][0]["image"] == SETTINGS["image"]
        jobs.patch("trainjobs", "job", {"spec": {"workers": {"count": 2}}})
        eventually(lambda: _worker_group(jobs)["replicas"] == 2)
        assert _worker_group(jobs)["template"]["spec"]["containers"][0]["image"] == other["image"]


def _worker_group(jobs: Jobs) -> dict[str, Any]:
    (group,) = jobs.ray_job()["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return group


def _holding(ray_job: dict[str, Any], *keys: str) -> Iterator[dict[str, Any]]:
    """The metadata of a RayJob and of its pod templates that have a label or annotation of these keys."""
    spec = ray_job["spec"]
    groups = [spec["rayClusterSpec"]["headGroupSpec"], *spec["rayClusterSpec"]["workerGroupSpecs"]]
    for each in (ray_job, spec["submitterPodTemplate"], *(group["template"] for group in groups)):
        metadata = each["metadata"]
        if {*metadata.get("labels", {}), *metadata.get("annotations", {})} & set(keys):
            yield metadata
