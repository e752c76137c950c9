"""Pod templates of a job's head, workers and submitter. All pods meet the Pod Security level `restricted`."""

from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.cluster import JOB_FOLDER, LEAVING_FILE, SCRATCH, STORAGE_PATH, KubernetesObject, lies_in
from trainjob.api.names import SUBMITTER_CONTAINER, UID_LABEL
from trainjob_operator.names import NAME_ANNOTATION, SPEC_ANNOTATION, WORKERS_ANNOTATION
from trainjob_operator.pod_environment import (
    driver_credentials,
    operator_variables,
    storage_credentials,
    variables,
)
from trainjob_operator.settings import NodePool, Settings

JOB_FILE = "trainjob.yaml"
ENTRY_POINT = f"python -m trainjob run {JOB_FOLDER}/{JOB_FILE}"
"""The command that starts the driver."""
HEAD_CONTAINER = "ray-head"
RAY_START: KubernetesObject = {
    "include-log-monitor": "0",  # otherwise a process in each pod collects logs that nobody reads
}
"""Parameters of `ray start` in every pod."""
HEAD_START: KubernetesObject = RAY_START | {"num-cpus": "0", "num-gpus": "0", "dashboard-host": "0.0.0.0"}
"""Parameters of `ray start` in the head pod, which runs no tasks or actors."""

_POD_SECURITY: KubernetesObject = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER_SECURITY: KubernetesObject = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_IMPORT_AHEAD = "setsid python -P -m trainjob.launch.fast.ray_fork_server > /dev/null 2>&1 &"
"""Starts the process that Ray's workers in the pod are forked from. It imports their libraries while Ray starts. An
image without it starts its workers later."""
_POST_START: KubernetesObject = {  # the file outlives a restart of the container in its pod
    "postStart": {"exec": {"command": ["sh", "-c", f"rm -f {LEAVING_FILE}; {_IMPORT_AHEAD}"]}}
}
_LIFECYCLE: KubernetesObject = _POST_START | {
    "preStop": {
        "exec": {
            "command": [
                "sh",
                "-c",
                f"touch {LEAVING_FILE}; for _ in $(seq 20); do "
                "grep -qs 'ray::[A-Za-z_]*TrainWorke[r]' /proc/[0-9]*/cmdline || exit 0; sleep 1; done",
            ]
        }
    },
}
"""Notifies the workers of a pod that is being deleted, and waits until they have saved a checkpoint and ended. The
brackets keep the command from matching itself."""
_READINESS: KubernetesObject = {  # like KubeRay's default, which begins after 10 s and then probes every 5 s
    "httpGet": {"path": "/api/healthz", "port": 52365},
    "initialDelaySeconds": 3,
    "periodSeconds": 1,
    "timeoutSeconds": 5,
    "failureThreshold": 50,
}
_ANNOTATIONS_OF_WRITERS = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "helm.sh/",
    "meta.helm.sh/",
    "kapp.k14s.io/",
    "objectset.rio.cattle.io/",
)
"""Prefixes of annotations by which tools keep track of the TrainJobs they write; some contain the whole manifest."""
_TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-"
"""Prefix of the annotations that tell Kueue how close to each other the workers should be, which excludes the head: see
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"""
_UNITS = ["", "K", "M", "G", "T", "P", "E"]


def head_template(job: TrainJob, settings: Settings, snapshot: str, worker_pods: int) -> KubernetesObject:
    """The head pod. It runs the driver, which reads the job from `snapshot` and reports progress to the TrainJob's
    status, but no workers."""
    head, default = job.spec.head, settings.defaults.head
    head_resources = resources(head.cpus or default.cpus, head.memory or default.memory)
    template = _template(job, settings, HEAD_CONTAINER, head_resources, worker_pods=worker_pods)
    template["metadata"]["annotations"][SPEC_ANNOTATION] = snapshot
    field = {"path": JOB_FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{SPEC_ANNOTATION}']"}}
    template["spec"]["volumes"].append({"name": "trainjob", "downwardAPI": {"items": [field]}})
    mount = {"name": "trainjob", "mountPath": JOB_FOLDER, "readOnly": True}
    template["spec"]["containers"][0]["volumeMounts"].append(mount)
    container = template["spec"]["containers"][0]
    container["readinessProbe"] = _READINESS
    if not job.spec.model.facts.is_users_loop:
        container["lifecycle"] = _POST_START
    container["env"] = _last_of_each_name([*driver_credentials(job), *container["env"]])
    template["spec"] = _without_empty(template["spec"]) | {"automountServiceAccountToken": True}
    return template


def worker_template(
    job: TrainJob,
    settings: Settings,
    pool: NodePool,
    workers: int,
    container_resources: KubernetesObject,
    worker_pods: int,
) -> KubernetesObject:
    """A pod with `workers` worker processes on the job's node pool."""
    container_resources = _with_devices(container_resources, pool)
    template = _template(job, settings, "ray-worker", container_resources, pool, worker_pods)
    template["metadata"]["annotations"][WORKERS_ANNOTATION] = str(workers)
    container = template["spec"]["containers"][0]
    container["readinessProbe"] = _READINESS
    if not job.spec.model.facts.is_users_loop:  # a function is not asked to save a checkpoint
        container["lifecycle"] = _LIFECYCLE
    if pool.capabilities:
        capabilities = _CONTAINER_SECURITY["capabilities"] | {"add": pool.capabilities}
        container["securityContext"] = _CONTAINER_SECURITY | {"capabilities": capabilities}
    spec = template["spec"] | {
        "volumes": _last_of_each_name([*pool.pod.get("volumes", []), *template["spec"]["volumes"]]),
        "nodeSelector": job.spec.pods.node_selector | pool.node_selector,
        "tolerations": [*pool.tolerations, *job.spec.pods.tolerations],
        "affinity": (job.spec.pods.affinity or {}) | (pool.affinity or {}),
        "runtimeClassName": pool.runtime_class_name,
        "priorityClassName": pool.priority_class_name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": pool.pod.get("enableServiceLinks", False),
    }
    template["spec"] = pool.pod | _without_empty(spec)
    return template


def submitter_template(job: TrainJob, settings: Settings) -> KubernetesObject:
    """The pod that submits the entry point to the head and follows its log. It gets no storage credentials."""
    template = _template(job, settings, SUBMITTER_CONTAINER, resources(0.1, "512Mi"))
    container = template["spec"]["containers"][0]
    container["command"] = ["python", "-m", "trainjob.submitter", ENTRY_POINT]
    unneeded = [variable for variable in storage_credentials(job) if variable not in job.spec.pods.env]
    container["env"] = [variable for variable in container["env"] if variable not in unneeded]
    runs_once = {"restartPolicy": "Never", "automountServiceAccountToken": False}
    template["spec"] = _without_empty(template["spec"] | runs_once)
    return template


def serving_spec(
    job: TrainJob, settings: Settings, name: str, container_resources: KubernetesObject, environment: Mapping[str, str]
) -> KubernetesObject:
    """Spec of a pod that serves the job's model. KubeRay adds the readiness probe."""
    spec = _template(job, settings, name, container_resources)["spec"]
    [container] = spec["containers"]
    container["env"] = _last_of_each_name([*variables(environment), *container["env"]])
    return _without_empty(spec | {"automountServiceAccountToken": False})


def resources(cpus: float, memory: str, gpus: int = 0, gpu_resource: str = "") -> KubernetesObject:
    """Requests for CPU, memory and GPUs, and limits for memory and GPUs. Quantities are in the form in which KubeRay
    writes them back."""
    limits = {"memory": multiply_quantity(memory, 1)} | ({gpu_resource: str(gpus)} if gpus else {})
    thousandths = round(cpus * 1000)
    cpu = f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)
    return {"requests": {"cpu": cpu} | limits, "limits": limits}


def multiply_quantity(quantity: str, number: int) -> str:
    """Multiplies a quantity of bytes. The result has the largest unit that keeps it whole: 2 * 1.5Gi is 3Gi."""
    amount = quantity.rstrip("kKMGTPEi")
    unit, base = quantity[len(amount) :], 1024 if quantity.endswith("i") else 1000
    count = ceil(Decimal(amount) * base ** _UNITS.index(unit[:1].upper()) * number)
    power = 0
    while count % base == 0 and power + 1 < len(_UNITS):
        count, power = count // base, power + 1
    suffix = _UNITS[power] + "i" if base == 1024 and power else _UNITS[power].replace("K", "k")
    return f"{count}{suffix}"


def _template(
    job: TrainJob,
    settings: Settings,
    container_name: str,
    container_resources: KubernetesObject,
    pool: NodePool | None = None,
    worker_pods: int = 1,
) -> KubernetesObject:
    """The part that all pods share. `pool` is the node pool of a worker pod, `worker_pods` the job's number of them."""
    pods, storage = job.spec.pods, job.spec.storage
    has_cpu_limits = settings.defaults.cpu_limits if pods.cpu_limits is None else pods.cpu_limits
    scratch = _scratch(pods.volume_mounts)
    empty_folder = {"emptyDir": {"sizeLimit": multiply_quantity(settings.defaults.scratch, 1)}}
    volumes = [*pods.volumes, *({"name": name} | empty_folder for name in scratch)]
    mounts = [*pods.volume_mounts, *({"name": name, "mountPath": path} for name, path in scratch.items())]
    if storage is not None and storage.persistent_volume_claim is not None:
        claim = {"claimName": storage.persistent_volume_claim}
        volumes.append({"name": "trainjob-storage", "persistentVolumeClaim": claim})
        mounts.append({"name": "trainjob-storage", "mountPath": STORAGE_PATH})
    container: KubernetesObject = {
        "name": container_name,
        "image": pods.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "env": _last_of_each_name([*operator_variables(pool, worker_pods), *storage_credentials(job), *pods.env]),
        "envFrom": pods.env_from,
        "volumeMounts": mounts,
        "resources": _with_cpu_limit(container_resources) if has_cpu_limits else container_resources,
        "securityContext": _CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that the status can show the last lines of a crash
    }
    pull_secrets: list[Any] = [{"name": name} for name in settings.image_pull_secrets]
    spec: KubernetesObject = {
        "containers": [container],
        "volumes": volumes,
        "securityContext": _POD_SECURITY | (pods.security_context or {}),
        "imagePullSecrets": _last_of_each_name([*pull_secrets, *pods.image_pull_secrets]),
        "nodeSelector": pods.node_selector,
        "tolerations": pods.tolerations,
        "affinity": pods.affinity,
        "serviceAccountName": pods.service_account_name,
        "schedulerName": pods.scheduler_name,
        "enableServiceLinks": False,  # otherwise every Service of the namespace adds variables
    }
    labels = settings.defaults.labels | job.metadata.labels | pods.labels
    annotations = settings.defaults.annotations | _copied_annotations(job) | pods.annotations
    if pool is None:
        annotations = {key: text for key, text in annotations.items() if not key.startswith(_TOPOLOGY_ANNOTATION)}
    else:
        annotations |= pool.annotations
    return {
        "metadata": {
            "labels": labels | {UID_LABEL: job.metadata.uid},
            "annotations": annotations | {NAME_ANNOTATION: job.metadata.name},
        },
        "spec": spec,
    }


def _with_cpu_limit(container_resources: KubernetesObject) -> KubernetesObject:
    cpu = {"cpu": container_resources["requests"]["cpu"]}
    return container_resources | {"limits": cpu | container_resources["limits"]}


def _with_devices(container_resources: KubernetesObject, pool: NodePool) -> KubernetesObject:
    devices = {name: multiply_quantity(str(number), 1) for name, number in pool.resources.items()}
    return {kind: amounts | devices for kind, amounts in container_resources.items()}


def _scratch(mounts: list[KubernetesObject]) -> dict[str, str]:
    """Names and paths of the writable volumes, without paths that the job mounts itself."""
    return {
        name: path for name, path in SCRATCH.items() if not any(lies_in(path, mount["mountPath"]) for mount in mounts)
    }


def _copied_annotations(job: TrainJob) -> dict[str, str]:
    return {
        key: value for key, value in job.metadata.annotations.items() if not key.startswith(_ANNOTATIONS_OF_WRITERS)
    }


def _last_of_each_name(items: list[Any]) -> list[Any]:
    """Removes all but the last item of each name."""
    return list({item["name"]: item for item in items}.values())


def _without_empty(spec: KubernetesObject) -> KubernetesObject:
    return {name: value for name, value in spec.items() if value not in (None, [], {})}
