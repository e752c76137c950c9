"""Environment variables of a job's pods."""

from collections.abc import Mapping

from trainjob.api import TrainJob
from trainjob.api.baselines import LANGUAGE_MODEL_KEY
from trainjob.api.cluster import HOME, KubernetesObject
from trainjob.api.code import GIT_PASSWORD, GIT_USERNAME
from trainjob_operator.settings import NodePool

_EVERYWHERE = {
    "HOME": HOME,
    # How often a raylet asks whether the head knows it, in milliseconds. A new head does not, so the raylet restarts:
    # after 4 s, but only after 30 s with Ray's default of 5,000.
    "RAY_raylet_liveness_self_check_interval_ms": "1000",
    # How often the head checks a raylet's health, in milliseconds. After five failures Ray counts it as dead. Until
    # then workers may wait for rows from a pod that is gone: for up to 32 s with Ray's default of 3,000.
    "RAY_health_check_period_ms": "1000",
    # How long Ray Train waits for all workers, including one in a lost pod, to leave the process group before it
    # restarts them, in seconds. The default is 30; a lost worker is mostly noticed after 20.
    "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S": "5",
}
_FEW_PODS = 16
_ONLY_FOR_FEW_PODS = "RAY_health_check_period_ms"
"""Not set for many pods: one of them would more often be too busy to answer for five seconds, and all workers restart
then."""
_AMD = {
    # Ray Train sets CUDA_VISIBLE_DEVICES to all GPUs of the pod. If Ray also set HIP_VISIBLE_DEVICES to the worker's
    # own GPU, the worker would look for its GPU under an index that does not exist.
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES": "1",
}


def operator_variables(pool: NodePool | None, worker_pods: int) -> list[KubernetesObject]:
    """The variables that the operator sets by itself, with the node pool's for a pod on one. `worker_pods` is the job's
    number of worker pods."""
    environment = {
        name: value for name, value in _EVERYWHERE.items() if name != _ONLY_FOR_FEW_PODS or worker_pods <= _FEW_PODS
    }
    if pool is not None:
        environment |= (_AMD if pool.is_amd else {}) | pool.env
    return variables(environment)


def variables(environment: Mapping[str, str]) -> list[KubernetesObject]:
    return [{"name": name, "value": value} for name, value in environment.items()]


def storage_credentials(job: TrainJob) -> list[KubernetesObject]:
    """The credentials for the job's storage, from its Secret, if it has one."""
    if job.spec.storage is None or job.spec.storage.secret_name is None:
        return []
    secret = job.spec.storage.secret_name
    optional = {"AWS_ACCESS_KEY_ID": False, "AWS_SECRET_ACCESS_KEY": False, "AWS_SESSION_TOKEN": True}
    return [_from_secret(key, secret, key, optional=is_optional) for key, is_optional in optional.items()]


def driver_credentials(job: TrainJob) -> list[KubernetesObject]:
    """The credentials that only the driver needs."""
    return [*_language_model_key(job), *_git_credentials(job), *_tracking_credentials(job)]


def _language_model_key(job: TrainJob) -> list[KubernetesObject]:
    model = job.spec.baselines.language_model if job.spec.baselines else None
    if model is None or model.secret_name is None:
        return []
    return [_from_secret(LANGUAGE_MODEL_KEY, model.secret_name, LANGUAGE_MODEL_KEY)]


def _git_credentials(job: TrainJob) -> list[KubernetesObject]:
    """The credentials for the Git server of the job's code."""
    git = job.spec.code.git if job.spec.code is not None else None
    if git is None or git.secret_name is None:
        return []
    return [
        _from_secret(GIT_USERNAME, git.secret_name, "username", optional=True),
        _from_secret(GIT_PASSWORD, git.secret_name, "password", optional=False),
    ]


def _tracking_credentials(job: TrainJob) -> list[KubernetesObject]:
    """The credentials for the job's experiment trackers."""
    secrets = (tracker.secret for tracker in job.spec.tracking)
    return [
        _from_secret(key, secret, key, optional=True) for secret, keys in secrets if secret is not None for key in keys
    ]


def _from_secret(name: str, secret: str, key: str, **options: bool) -> KubernetesObject:
    """The variable `name` with the value of a Secret's key."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key} | options}}
