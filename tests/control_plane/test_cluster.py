"""The cluster that the other tests rest on: a real API server, and KubeRay at work."""

from typing import Any

import pytest

from cluster.client import Cluster, KubectlError
from cluster.control_plane import ControlPlane


def ray_job(name: str, namespace: str) -> dict[str, Any]:
    head = {"containers": [{"name": "ray-head", "image": "rayproject/ray"}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "entrypoint": "python -c pass",
            "rayClusterSpec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": head}}},
        },
    }


def await_head_pod(cluster: Cluster, name: str, namespace: str) -> None:
    """Wait until KubeRay has made the RayJob's cluster, and that cluster's head pod."""
    own, timeout = f"--namespace={namespace}", "--timeout=30s"
    cluster.kubectl("wait", f"rayjob/{name}", own, "--for=jsonpath={.status.jobDeploymentStatus}=Initializing", timeout)
    ray_cluster = cluster.kubectl("get", f"rayjob/{name}", own, "--output=jsonpath={.status.rayClusterName}")
    head = f"--selector=ray.io/node-type=head,ray.io/cluster={ray_cluster}"
    cluster.kubectl("wait", "pod", own, head, "--for=create", timeout)


def test_kuberay_picks_up_a_ray_job(cluster: Cluster, namespace: str) -> None:
    cluster.apply(ray_job("hello", namespace))
    await_head_pod(cluster, "hello", namespace)
    [ray_cluster] = cluster.find("rayclusters", namespace)
    [pod] = cluster.find("pods", namespace)
    assert ray_cluster["metadata"]["ownerReferences"][0]["name"] == "hello"
    assert pod["metadata"]["ownerReferences"][0]["name"] == ray_cluster["metadata"]["name"]
    assert pod["status"]["phase"] == "Pending"  # there are no nodes


def test_what_the_api_server_refuses_is_an_error(cluster: Cluster, namespace: str) -> None:
    wrong = ray_job("wrong", namespace)
    wrong["spec"]["backoffLimit"] = "many"
    with pytest.raises(KubectlError, match="backoffLimit"):
        cluster.apply(wrong)


@pytest.mark.nightly
def test_etcd_comes_back_after_a_crash(control_plane: ControlPlane) -> None:
    """Tests of faults kill the API server, and stop and start the others."""
    control_plane.kill("etcd")
    control_plane.start("etcd")
    control_plane.apply(ray_job("after", "default"))
    await_head_pod(control_plane, "after", "default")
    control_plane.kubectl("delete", "rayjob", "after", "--namespace=default", "--wait=false")
