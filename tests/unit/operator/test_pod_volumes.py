"""The volumes of a RayJob's pods."""

import pytest
import yaml
from operator_objects import Object, trainjob
from rendering import EVERY_POD, pod_templates, rendered


@EVERY_POD
def test_storages_claim_is_mounted_in_every_pod(which: str):
    ray_job = rendered(trainjob(storage={"persistentVolumeClaim": "runs"}))
    pods = pod_templates(ray_job)
    pod = pods[which]["spec"]
    [volume] = [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    [mount] = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]]
    snapshot = yaml.safe_load(pods["head"]["metadata"]["annotations"]["trainjob.dev/trainjob"])
    assert volume["persistentVolumeClaim"] == {"claimName": "runs"}
    assert snapshot["spec"]["storage"]["uri"] == mount["mountPath"]
    assert "persistentVolumeClaim" not in snapshot["spec"]["storage"]


def mounts_of(pod: Object) -> dict[str, str]:
    """Names of a pod's volumes by where they are mounted."""
    [container] = pod["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounts.values()) <= {volume["name"] for volume in pod["volumes"]}
    return mounts


@EVERY_POD
def test_a_pod_writes_to_its_volumes_only(which: str):
    pod = pod_templates(rendered(trainjob()))[which]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "trainjob-tmp", "emptyDir": {"sizeLimit": "64Gi"}} in pod["volumes"]
    assert {"/tmp": "trainjob-tmp", "/home/trainjob": "trainjob-home"}.items() <= mounts_of(pod).items()
    assert {"name": "HOME", "value": "/home/trainjob"} in container["env"]


@EVERY_POD
@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/tmp", {"/home/trainjob"}),
        ("/tmp/", {"/home/trainjob"}),
        ("/home", {"/tmp"}),
        ("/tmp/data", {"/tmp", "/home/trainjob"}),
        ("/tmpfs", {"/tmp", "/home/trainjob"}),
    ],
)
def test_where_the_job_mounts_a_volume_there_is_no_other(which: str, path: str, own: set[str]):
    own_volume = {"name": "cache", "emptyDir": {}}
    job = trainjob(pods={"volumes": [own_volume], "volumeMounts": [{"name": "cache", "mountPath": path}]})
    mounts = mounts_of(pod_templates(rendered(job))[which]["spec"])
    assert mounts[path] == "cache"
    assert {at for at, name in mounts.items() if name in ("trainjob-tmp", "trainjob-home")} == own
