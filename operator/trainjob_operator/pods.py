"""Pod templates of a job's head, workers and submitter; every pod meets Pod Security's level `restricted`."""

from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.baselines import LANGUAGE_MODEL_KEY
from trainjob.api.cluster import HOME, JOB_FOLDER, LEAVING, SCRATCH, STORAGE_PATH, KubernetesObject, lies_in
from trainjob.api.names import SUBMITTER_CONTAINER, UID_LABEL
from trainjob_operator.names import NAME_ANNOTATION, SPEC_ANNOTATION, WORKERS_ANNOTATION
from trainjob_operator.settings import NodePool, Settings

JOB_FILE = "trainjob.yaml"
ENTRY_POINT = f"python -m trainjob run {JOB_FOLDER}/{JOB_FILE}"
"""What the driver is started by."""
HEAD_CONTAINER = "ray-head"
RAY_START: KubernetesObject = {
    "include-log-monitor": "0",  # a process in each pod that collects what workers print; nothing here asks for it
}
"""What each pod's `ray start` is told."""
HEAD_START: KubernetesObject = RAY_START | {"num-cpus": "0", "num-gpus": "0", "dashboard-host": "0.0.0.0"}
"""And the head's: it takes no work."""

_POD_SECURITY: KubernetesObject = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER_SECURITY: KubernetesObject = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_ENVIRONMENT = {
    "HOME": HOME,
    # Milliseconds between a raylet's questions whether the head knows it. To a new head it is a stranger, and starts
    # anew: with Ray's own 5,000 that takes 30 s instead of 4.
    "RAY_raylet_liveness_self_check_interval_ms": "1000",
    # Milliseconds between the head's questions whether a raylet is there; after five without an answer it is dead, and
    # until then workers may look for rows in a pod that is gone: with Ray's own 3,000 that takes up to 32 s.
    "RAY_health_check_period_ms": "1000",
    # Seconds that Ray Train gives all workers, one in a lost pod too, to leave their process group before they start
    # anew: it would take 30, and the lost one mostly takes 20 to be noticed.
    "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S": "5",
}
_FEW_PODS = 16
_FOR_FEW_PODS = "RAY_health_check_period_ms"
"""Of many pods one is more often merely too busy to answer for five seconds, and all would start anew because of it."""
_AMD_ENVIRONMENT = {
    # Ray shows each worker its own GPU alone, and Ray Train then all those of its pod, as CUDA_VISIBLE_DEVICES: with
    # Ray's HIP_VISIBLE_DEVICES beside it, a worker would look for its GPU under a number that is not there.
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES": "1",
}
_LIFECYCLE: KubernetesObject = {  # the file stays where a container starts anew in its pod
    "postStart": {"exec": {"command": ["rm", "-f", LEAVING]}},
    "preStop": {
        "exec": {
            "command": [
                "sh",
                "-c",
                f"touch {LEAVING}; for _ in $(seq 20); do "
                "grep -qs 'ray::[A-Za-z_]*TrainWorke[r]' /proc/[0-9]*/cmdline || exit 0; sleep 1; done",
            ]
        }
    },
}
"""A pod that is about to go tells its workers so, and waits until they have ended: they save a checkpoint first. In
brackets, so that the command does not find itself."""
_READINESS: KubernetesObject = {  # KubeRay's own asks the same, but only after 10 s, and then every 5
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
"""Annotations that begin so are notes of the tools that write TrainJobs, some of them with the whole manifest in it."""
_TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-"
"""What begins so tells Kueue how near to each other the workers are to be, and nothing of the head: see
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"""
_UNITS = ["", "K", "M", "G", "T", "P", "E"]


def head_template(job: TrainJob, settings: Settings, snapshot: str, worker_pods: int) -> KubernetesObject:
    """The head pod: it runs the driver, which reads the job from `snapshot` and writes its progress into the TrainJob's
    status, but no worker."""
    head, default = job.spec.head, settings.defaults.head
    own = resources(head.cpus or default.cpus, head.memory or default.memory)
    template = _template(job, settings, HEAD_CONTAINER, own, worker_pods=worker_pods)
    template["metadata"]["annotations"][SPEC_ANNOTATION] = snapshot
    field = {"path": JOB_FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{SPEC_ANNOTATION}']"}}
    template["spec"]["volumes"].append({"name": "trainjob", "downwardAPI": {"items": [field]}})
    mount = {"name": "trainjob", "mountPath": JOB_FOLDER, "readOnly": True}
    template["spec"]["containers"][0]["volumeMounts"].append(mount)
    container = template["spec"]["containers"][0]
    container["readinessProbe"] = _READINESS
    container["env"] = _named([*_language_model_key(job), *container["env"]])
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
    """A pod of `workers` on the job's node pool."""
    container_resources = _with_devices(container_resources, pool)
    template = _template(job, settings, "ray-worker", container_resources, pool, worker_pods)
    template["metadata"]["annotations"][WORKERS_ANNOTATION] = str(workers)
    container = template["spec"]["containers"][0]
    container["readinessProbe"] = _READINESS
    if job.spec.model.function is None:  # a function is not asked to save anything
        container["lifecycle"] = _LIFECYCLE
    if pool.capabilities:
        capabilities = _CONTAINER_SECURITY["capabilities"] | {"add": pool.capabilities}
        container["securityContext"] = _CONTAINER_SECURITY | {"capabilities": capabilities}
    spec = template["spec"] | {
        "volumes": _named([*pool.pod.get("volumes", []), *template["spec"]["volumes"]]),
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
    """The pod that hands the entry point to the head and follows its log. It opens no storage, so it gets no keys."""
    template = _template(job, settings, SUBMITTER_CONTAINER, resources(0.1, "512Mi"))
    container = template["spec"]["containers"][0]
    container["command"] = ["python", "-m", "trainjob.launch.fast.ray_submit", ENTRY_POINT]
    unneeded = [variable for variable in _credentials(job) if variable not in job.spec.pods.env]
    container["env"] = [variable for variable in container["env"] if variable not in unneeded]
    own = {"restartPolicy": "Never", "automountServiceAccountToken": False}
    template["spec"] = _without_empty(template["spec"] | own)
    return template


def serving_spec(
    job: TrainJob, settings: Settings, name: str, container_resources: KubernetesObject, environment: Mapping[str, str]
) -> KubernetesObject:
    """Spec of a pod that serves the job's model; KubeRay itself asks whether it is ready."""
    spec = _template(job, settings, name, container_resources)["spec"]
    [container] = spec["containers"]
    container["env"] = _named([*_variables(environment), *container["env"]])
    return _without_empty(spec | {"automountServiceAccountToken": False})


def resources(cpus: float, memory: str, gpus: int = 0, gpu_resource: str = "") -> KubernetesObject:
    """Memory and GPUs are asked for and limited, CPU is asked for. Quantities are as KubeRay writes them back."""
    limits = {"memory": times(memory, 1)} | ({gpu_resource: str(gpus)} if gpus else {})
    thousandths = round(cpus * 1000)
    cpu = f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)
    return {"requests": {"cpu": cpu} | limits, "limits": limits}


def times(quantity: str, number: int) -> str:
    """`number` times a quantity of bytes, with the largest unit that leaves a whole number: 2 * 1.5Gi is 3Gi."""
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
    """What all pods have alike, and what those on a node pool have besides; `worker_pods` is how many the job has."""
    pods, storage = job.spec.pods, job.spec.storage
    has_cpu_limits = settings.defaults.cpu_limits if pods.cpu_limits is None else pods.cpu_limits
    scratch = _scratch(pods.volume_mounts)
    own_scratch = {"emptyDir": {"sizeLimit": times(settings.defaults.scratch, 1)}}
    volumes = [*pods.volumes, *({"name": name} | own_scratch for name in scratch)]
    mounts = [*pods.volume_mounts, *({"name": name, "mountPath": path} for name, path in scratch.items())]
    if storage is not None and storage.persistent_volume_claim is not None:
        claim = {"claimName": storage.persistent_volume_claim}
        volumes.append({"name": "trainjob-storage", "persistentVolumeClaim": claim})
        mounts.append({"name": "trainjob-storage", "mountPath": STORAGE_PATH})
    everywhere = {
        name: _ENVIRONMENT[name] for name in _ENVIRONMENT if name != _FOR_FEW_PODS or worker_pods <= _FEW_PODS
    }
    own = _variables(everywhere | (_environment(pool) if pool is not None else {}))
    container: KubernetesObject = {
        "name": container_name,
        "image": pods.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "env": _named([*own, *_credentials(job), *pods.env]),
        "envFrom": pods.env_from,
        "volumeMounts": mounts,
        "resources": _with_cpu_limit(container_resources) if has_cpu_limits else container_resources,
        "securityContext": _CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that the status can tell a crash's last words
    }
    pull_secrets: list[Any] = [{"name": name} for name in settings.image_pull_secrets]
    spec: KubernetesObject = {
        "containers": [container],
        "volumes": volumes,
        "securityContext": _POD_SECURITY | (pods.security_context or {}),
        "imagePullSecrets": _named([*pull_secrets, *pods.image_pull_secrets]),
        "nodeSelector": pods.node_selector,
        "tolerations": pods.tolerations,
        "affinity": pods.affinity,
        "serviceAccountName": pods.service_account_name,
        "schedulerName": pods.scheduler_name,
        "enableServiceLinks": False,  # or each Service of the namespace is in the environment
    }
    labels = settings.defaults.labels | job.metadata.labels | pods.labels
    annotations = settings.defaults.annotations | _own_annotations(job) | pods.annotations
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
    devices = {name: times(str(number), 1) for name, number in pool.resources.items()}
    return {kind: amounts | devices for kind, amounts in container_resources.items()}


def _environment(pool: NodePool) -> dict[str, str]:
    return (_AMD_ENVIRONMENT if pool.is_amd else {}) | pool.env


def _variables(environment: Mapping[str, str]) -> list[KubernetesObject]:
    return [{"name": name, "value": value} for name, value in environment.items()]


def _scratch(mounts: list[KubernetesObject]) -> dict[str, str]:
    """The volumes of what pods may write to, but for those where the job's own mounts are."""
    return {
        name: path for name, path in SCRATCH.items() if not any(lies_in(path, mount["mountPath"]) for mount in mounts)
    }


def _credentials(job: TrainJob) -> list[KubernetesObject]:
    if job.spec.storage is None or job.spec.storage.secret_name is None:
        return []
    secret = job.spec.storage.secret_name
    optional = {"AWS_ACCESS_KEY_ID": False, "AWS_SECRET_ACCESS_KEY": False, "AWS_SESSION_TOKEN": True}
    return [
        {"name": key, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": may_lack}}}
        for key, may_lack in optional.items()
    ]


def _language_model_key(job: TrainJob) -> list[KubernetesObject]:
    """For the driver alone, which asks the model."""
    model = job.spec.baselines.language_model if job.spec.baselines else None
    if model is None or model.secret_name is None:
        return []
    reference = {"name": model.secret_name, "key": LANGUAGE_MODEL_KEY}
    return [{"name": LANGUAGE_MODEL_KEY, "valueFrom": {"secretKeyRef": reference}}]


def _own_annotations(job: TrainJob) -> dict[str, str]:
    return {
        key: value for key, value in job.metadata.annotations.items() if not key.startswith(_ANNOTATIONS_OF_WRITERS)
    }


def _named(items: list[Any]) -> list[Any]:
    """The last item of each name."""
    return list({item["name"]: item for item in items}.values())


def _without_empty(spec: KubernetesObject) -> KubernetesObject:
    return {name: value for name, value in spec.items() if value not in (None, [], {})}
