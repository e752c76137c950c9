"""The pods of a RayJob: what they have alike, and that they are safe."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_objects import UID, Object, trainjob
from rendering import EVERY_POD, pod_templates

from control_plane.small_strategies import names
from control_plane.strategies import trainjobs
from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.api.load import load_trainjob
from trainjob_operator.render import render, with_storage
from trainjob_operator.settings import Settings

SETTINGS = Settings.model_validate(
    {
        "image": "trainjob:1.0",
        "imagePullSecrets": ["registry"],
        "nodePools": {"a100": {"gpusPerNode": 8}},
        "defaults": {"labels": {"cost": "42", "team": "none"}, "annotations": {"scrape": "yes"}},
    }
)
VOLUME = {"name": "cache", "emptyDir": {}}
OF_WRITERS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "argocd.argoproj.io/tracking-id",
    "meta.helm.sh/release-name",
    "kapp.k14s.io/original",
    "objectset.rio.cattle.io/applied",
)
MOUNT = {"name": "cache", "mountPath": "/cache"}
PODS: Object = {
    "image": "mine:2",
    "imagePullSecrets": [{"name": "mine"}],
    "serviceAccountName": "trainer",
    "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
    "volumes": [VOLUME],
    "volumeMounts": [MOUNT],
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "securityContext": {"runAsUser": 1000, "fsGroup": 2000},
    "labels": {"app": "bert"},
    "annotations": {"note": "pod"},
}


def templates(job: TrainJob, with_settings: Settings = SETTINGS) -> dict[str, Object]:
    return pod_templates(render(job, with_settings))


OWN_ENVIRONMENT = [
    {"name": "HOME", "value": "/home/trainjob"},
    {"name": "RAY_raylet_liveness_self_check_interval_ms", "value": "1000"},
    {"name": "RAY_health_check_period_ms", "value": "1000"},
    {"name": "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S", "value": "5"},
]


def falls_short_of_restricted(pod: Object) -> list[str]:
    """The fields of a pod that the Pod Security level `restricted` rejects."""
    context, faults = pod.get("securityContext", {}), list[str]()
    if context.get("runAsUser") == 0 or context.get("runAsNonRoot") is not True:
        faults.append("runs as root")
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        faults.append("any system call")
    if pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}:
        faults.append("the host's namespaces")
    for volume in pod.get("volumes", []):
        if not volume.keys() - {"name"} <= {"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "secret"}:
            faults.append(f"volume {volume['name']}")
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False:
            faults.append("may gain privileges")
        if own.get("capabilities") != {"drop": ["ALL"]}:
            faults.append("keeps capabilities")
    return faults


@EVERY_POD
@pytest.mark.parametrize("spec", [{}, {"pods": PODS, "storage": {"persistentVolumeClaim": "runs"}}])
def test_every_pod_meets_the_restricted_level_of_pod_security(which: str, spec: Object):
    assert falls_short_of_restricted(templates(trainjob(**spec))[which]["spec"]) == []


def test_only_the_head_gets_a_token():
    tokens = {
        which: template["spec"]["automountServiceAccountToken"]
        for which, template in templates(trainjob(pods=PODS)).items()
    }
    assert tokens == {"head": True, "worker": False, "submitter": False}


@EVERY_POD
def test_every_pod_has_what_the_job_says_of_pods(which: str):
    pod = templates(trainjob(pods=PODS, workers={"nodePool": "a100"}))[which]["spec"]
    [container] = pod["containers"]
    assert container["image"] == "mine:2"
    assert container["env"] == [*OWN_ENVIRONMENT, *PODS["env"]]
    assert container["envFrom"] == PODS["envFrom"]
    assert MOUNT in container["volumeMounts"]
    assert VOLUME in pod["volumes"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}, {"name": "mine"}]
    for name in ("serviceAccountName", "nodeSelector", "tolerations", "affinity"):
        assert pod[name] == PODS[name]
    assert PODS["securityContext"].items() <= pod["securityContext"].items()


@pytest.mark.parametrize(("count", "per_pod", "expected"), [(16, 1, True), (17, 1, False), (128, 8, True)])
def test_many_pods_are_given_rays_own_time_to_answer(count: int, per_pod: int, expected: bool):
    made = templates(trainjob(workers={"count": count, "perPod": per_pod}))
    for which in ("head", "worker"):
        names = {each["name"] for each in made[which]["spec"]["containers"][0]["env"]}
        assert ("RAY_health_check_period_ms" in names) == expected


@EVERY_POD
def test_every_pod_has_the_settings_image(which: str):
    pod = templates(trainjob())[which]["spec"]
    [container] = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("trainjob:1.0", "IfNotPresent")
    assert "serviceAccountName" not in pod


def test_the_submitter_can_be_run_as_a_job():
    spec = templates(trainjob())["submitter"]["spec"]
    assert spec["restartPolicy"] == "Never"
    python, option, module, entry_point = spec["containers"][0]["command"]
    assert (python, option, entry_point) == ("python", "-m", "python -m trainjob run /etc/trainjob/trainjob.yaml")
    assert module == "trainjob.submitter", "images of other versions know it by this name"
    assert find_spec(module) is not None


@EVERY_POD
def test_every_pod_has_the_jobs_labels_and_annotations(which: str):
    metadata = {
        "labels": {"team": "nlp", "app": "job"},
        "annotations": {"note": "job", **dict.fromkeys(OF_WRITERS, "{}")},
    }
    template = templates(trainjob(metadata, pods=PODS))[which]["metadata"]
    assert template["labels"] == {"cost": "42", "team": "nlp", "app": "bert", "trainjob.dev/uid": UID}
    own = {"trainjob.dev/trainjob", "trainjob.dev/workers"}
    others = {key: value for key, value in template["annotations"].items() if key not in own}
    assert others == {"scrape": "yes", "note": "pod", "trainjob.dev/name": "job"}


@pytest.mark.parametrize("where", ["job", "pods", "settings"])
def test_only_workers_are_told_how_near_to_each_other_they_are_to_be(where: str):
    near = {"kueue.x-k8s.io/podset-required-topology": "example.com/rack", "note": "all"}
    job = trainjob(
        {"annotations": near} if where == "job" else {}, pods={"annotations": near} if where == "pods" else {}
    )
    defaults = {"defaults": {"annotations": near}} if where == "settings" else {}
    made = templates(job, Settings.model_validate({"image": "i", **defaults}))
    annotations = {which: template["metadata"]["annotations"] for which, template in made.items()}
    assert [which for which in made if "kueue.x-k8s.io/podset-required-topology" in annotations[which]] == ["worker"]
    assert [annotations[which]["note"] for which in made] == ["all"] * 3


FABRIC: Object = {
    "gpusPerNode": 8,
    "resources": {"rdma/hca": 2, "example.com/slots": 1000},
    "env": {"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "WARN"},
    "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma", "scrape": "no"},
    "capabilities": ["IPC_LOCK"],
}


def test_workers_have_the_fabric_of_their_pool():
    settings = SETTINGS.model_copy(
        update={"node_pools": Settings.model_validate({"image": "i", "nodePools": {"a100": FABRIC}}).node_pools}
    )
    pods = {"env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}
    made = templates(trainjob(pods=pods, workers={"count": 8, "gpus": 1, "nodePool": "a100"}), settings)
    [container] = made["worker"]["spec"]["containers"]
    devices = {"rdma/hca": "2", "example.com/slots": "1k", "nvidia.com/gpu": "8"}
    for kind in ("requests", "limits"):
        assert devices.items() <= container["resources"][kind].items()
    assert {"name": "NCCL_IB_HCA", "value": "mlx5"} in container["env"]
    assert [each["value"] for each in container["env"] if each["name"] == "NCCL_DEBUG"] == ["INFO"]  # the job's own
    assert made["worker"]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma"
    assert made["worker"]["metadata"]["annotations"]["scrape"] == "no"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert falls_short_of_restricted(made["worker"]["spec"]) == ["keeps capabilities"]
    for which in ("head", "submitter"):
        assert falls_short_of_restricted(made[which]["spec"]) == []
        assert made[which]["metadata"]["annotations"]["scrape"] == "yes"
        assert not [word for word in ("rdma", "NCCL_IB_HCA", "IPC_LOCK") if word in json.dumps(made[which])]


@pytest.mark.parametrize(("resource", "expected"), [("amd.com/gpu", ["1"]), ("nvidia.com/gpu", [])])
def test_workers_of_amds_gpus_see_those_of_their_pod(resource: str, expected: list[str]):
    settings = Settings.model_validate({"image": "i", "nodePools": {"mi300": {"gpuResource": resource}}})
    [container] = templates(trainjob(workers={"nodePool": "mi300"}), settings)["worker"]["spec"]["containers"]
    name = "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES"
    assert [each["value"] for each in container["env"] if each["name"] == name] == expected


def test_the_rayjob_has_the_jobs_labels():
    metadata = render(trainjob({"labels": {"team": "nlp"}}), SETTINGS)["metadata"]
    assert metadata["labels"] == {
        "team": "nlp", "trainjob.dev/uid": UID, "app.kubernetes.io/managed-by": "trainjob-operator",
    }  # fmt: skip


@EVERY_POD
def test_storages_secret_is_only_referred_to(which: str, monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "a-value-of-the-operators")
    template = templates(trainjob(storage={"uri": "s3://runs", "secretName": "minio"}))[which]
    env = [variable for variable in template["spec"]["containers"][0]["env"] if variable not in OWN_ENVIRONMENT]
    if which == "submitter":  # it opens no storage
        assert env == []
        return
    assert [(variable["name"], variable.keys()) for variable in env] == [
        (name, {"name", "valueFrom"}) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    ]
    references = [variable["valueFrom"]["secretKeyRef"] for variable in env]
    assert {reference["name"] for reference in references} == {"minio"}
    assert [reference["optional"] for reference in references] == [False, False, True]
    assert "a-value-of-the-operators" not in json.dumps(template)


@EVERY_POD
def test_only_the_driver_gets_the_credentials_of_a_tracker(which: str):
    job = trainjob(tracking=[{"mlflow": {"uri": "http://mlflow:5000", "secretName": "mlflow"}}])
    container = templates(job)[which]["spec"]["containers"][0]
    names = ["MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"] if which == "head" else []
    expected = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "mlflow", "key": name, "optional": True}}}
        for name in names
    ]
    assert [each for each in container.get("env", []) if "MLFLOW" in each["name"]] == expected


@EVERY_POD
def test_only_the_driver_gets_the_key_of_a_language_model(which: str):
    model = {"endpoint": "http://vllm:8000/v1", "model": "tiny", "secretName": "llm"}
    job = trainjob(
        model={"textClassifier": {"encoder": {}}},
        dataset={"train": {"uri": "s3://data/rows.csv"}, "text": ["title"], "label": "tag"},
        baselines={"languageModel": model},
    )
    container = templates(job)[which]["spec"]["containers"][0]
    reference = {"secretKeyRef": {"name": "llm", "key": "OPENAI_API_KEY"}}
    expected = [{"name": "OPENAI_API_KEY", "valueFrom": reference}] if which == "head" else []
    assert [each for each in container.get("env", []) if each["name"] == "OPENAI_API_KEY"] == expected


@EVERY_POD
def test_the_pods_of_built_in_models_import_libraries_while_ray_starts(which: str):
    model = {"textClassifier": {"encoder": {}}}
    dataset = {"train": {"uri": "s3://data/rows.csv"}, "text": ["title"], "label": "tag"}
    job, function = trainjob(model=model, dataset=dataset), trainjob(model={"function": {"name": "a:b"}})
    hooks = templates(job)[which]["spec"]["containers"][0].get("lifecycle", {})
    assert ("trainjob.launch.fast.ray_fork_server" in json.dumps(hooks.get("postStart"))) == (which != "submitter")
    assert "lifecycle" not in templates(function)[which]["spec"]["containers"][0]


@EVERY_POD
def test_only_the_driver_gets_the_password_of_a_git_server(which: str):
    source = {"git": {"url": "https://git.test/team/code", "secretName": "git"}}
    container = templates(trainjob(model={"function": {"name": "a:b"}}, code=source))[which]["spec"]["containers"][0]
    found = {each["name"]: each for each in container.get("env", []) if each["name"].startswith("TRAINJOB_GIT")}
    if which != "head":
        assert not found
        return
    keys = {name: each["valueFrom"]["secretKeyRef"] for name, each in found.items()}
    assert keys == {
        "TRAINJOB_GIT_USERNAME": {"name": "git", "key": "username", "optional": True},
        "TRAINJOB_GIT_PASSWORD": {"name": "git", "key": "password", "optional": False},
    }


pools = st.dictionaries(names, st.integers(1, 16), min_size=6)
"""The number of GPUs on a node, for every pool that the TrainJobs name."""


@given(trainjobs(), pools)
def test_any_trainjob_becomes_a_rayjob_that_keeps_its_promises(
    tmp_path_factory: pytest.TempPathFactory, doc: Object, gpus_per_node: dict[str, int]
):
    doc["metadata"] |= {"namespace": "team", "uid": UID}
    node_pools = {name: {"gpusPerNode": number} for name, number in gpus_per_node.items()}
    own_settings = Settings.model_validate(
        {"image": "trainjob:1.0", "nodePools": node_pools, "defaults": {"storage": {"uri": "s3://shared"}}}
    )
    job = with_storage(TrainJob.model_validate(doc, strict=True, by_alias=True, by_name=False), None, own_settings)
    ray_job = render(job, own_settings)
    assert ray_job == render(with_storage(TrainJob.model_validate(doc), None, own_settings), own_settings)
    assert json.loads(json.dumps(ray_job)) == ray_job

    pods, [group] = pod_templates(ray_job), ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    per_pod = int(pods["worker"]["metadata"]["annotations"]["trainjob.dev/workers"])
    threads = max(1, int(job.spec.workers.cpus or 1))
    assert group["replicas"] * per_pod == job.spec.worker_slots
    assert int(group["rayStartParams"]["num-cpus"]) > per_pod * threads
    assert int(group["rayStartParams"]["num-gpus"]) == per_pod * job.spec.workers.gpus
    for template in pods.values():
        assert falls_short_of_restricted(template["spec"]) == []
    assert_driver_reads(job, pods["head"], tmp_path_factory.getbasetemp() / "trainjob.yaml")


def assert_driver_reads(job: TrainJob, head: Object, path: Path) -> None:
    """The driver's spec is that of `job`, except for fields that only a cluster needs and the path of its claim."""
    path.write_text(head["metadata"]["annotations"]["trainjob.dev/trainjob"])
    read = load_trainjob(path)

    def trained(of: TrainJob) -> Any:
        cluster_only = {
            "cancel",
            "head",
            "notify",
            "managed_by",
            "pods",
            "deadlines",
            "ttl_after_finished",
            "suspend",
            "storage",
            "ray_job_ttl_after_finished",
        }
        return of.spec.model_dump(exclude={**dict.fromkeys(cluster_only, True), "workers": {"cpus"}})

    assert trained(read) == trained(with_defaults(job))
    if job.spec.storage is not None and job.spec.storage.uri is not None:
        assert read.spec.storage == job.spec.storage
