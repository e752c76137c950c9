"""The Ray cluster of a run: the one that `RAY_ADDRESS` names, or one that is started on this machine for the run."""

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainjob import interrupts, local_ray
from trainjob.api import TrainJobSpec
from trainjob.api.cluster import JOB_FOLDER, WORKER_RESOURCE
from trainjob.errors import TransientError, UserError, notify
from trainjob.launch.fast.forked_ray_workers import runtime_environment
from trainjob.launch.fast.ray_internals import sends_tokens, silence_worker_deaths, without_unneeded_processes

if TYPE_CHECKING:
    from trainjob.data import Examples

DATA_CPUS = 2
"""CPUs of the Ray cluster in addition to those of the workers: without them, Ray Data would wait forever to read."""

OBJECT_STORE_BYTES = 2 * 2**30

SECONDS_TO_PLACE_WORKERS = "20"
"""How long Ray Train waits for the resources that it has counted for an elastic job's workers: a node may just have
gone."""

SECONDS_TO_LEAVE = 20.0
"""How long new workers wait until a node is gone that was about to go."""

_ENVIRONMENT = {
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths mean what they mean in the driver
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",  # print() writes to standard output, not into a log of Ray's
    "THP_MEM_ALLOC_ENABLE": "1",  # PyTorch's large arrays lie in huge pages: see docs/decisions/huge-pages.md
}
_OWN_CLUSTER_ENVIRONMENT = {
    "RAY_prestart_worker_first_driver": "0",  # idle processes that no actor will take
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a process that waits for Ray's autoscaler to take a machine away
}
_SET_BY_RAY = {"RAY_CLIENT_MODE": "0", "PYTHONBREAKPOINT": ""}
"""Variables that Ray itself sets when it is imported and joins a cluster."""


def seconds_between_polls(workers: int) -> float:
    """How often Ray Train polls every worker: its 2 s would delay each report and the end of a small run, while the
    answers of hundreds of workers keep a CPU busy for longer."""
    return max(0.2, workers / 100)


def on_cluster() -> bool:
    """Whether there is a cluster to join, rather than one to start on this machine."""
    return "RAY_ADDRESS" in os.environ


def is_own_cluster() -> bool:
    """Whether the cluster exists for this run alone and ends with it: started here, or by the operator."""
    return not on_cluster() or _made_by_operator()


def _made_by_operator() -> bool:
    return Path(JOB_FOLDER).exists()


def is_elastic(spec: TrainJobSpec) -> bool:
    """Whether training continues with fewer workers than requested. On one machine, all start and end together."""
    return spec.workers.minimum is not None and on_cluster()


def own_address() -> str:
    """The address at which workers reach this process; on a cluster they may run on other machines."""
    return socket.gethostbyname(socket.gethostname()) if on_cluster() else "127.0.0.1"


def set_environment(spec: TrainJobSpec) -> None:
    """Sets the environment variables that Ray and PyTorch read, and in advance those that Ray would set. To be called
    before other threads work.

    Adding a variable moves the table of all variables. Another thread that searches the table meanwhile, as the AWS SDK
    does for every request, reads freed memory: https://pubs.opengroup.org/onlinepubs/9799919799/functions/setenv.html
    """
    environment = _ENVIRONMENT | _SET_BY_RAY
    environment["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = f"{seconds_between_polls(spec.workers.count):g}"
    if is_elastic(spec):
        environment["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = SECONDS_TO_PLACE_WORKERS
    if is_own_cluster():
        environment |= _OWN_CLUSTER_ENVIRONMENT
    if not on_cluster():
        environment |= local_ray.ENVIRONMENT
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def start_ray(spec: TrainJobSpec, threads: int, modules: Sequence[str] = ()) -> None:
    """Joins the cluster or starts one, without printing; its processes will have imported `modules` and PyTorch.

    Raises TransientError if the cluster cannot be joined or does not start, and UserError where Ray was imported before
    the variables that it reads were set."""
    environment = runtime_environment(threads, modules, own_cluster=is_own_cluster())  # starts to import them
    import ray

    if on_cluster():
        try:
            ray.init(runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError:
            raise TransientError(
                f"cannot connect to a Ray cluster at RAY_ADDRESS={os.environ['RAY_ADDRESS']}: start it, set "
                "RAY_AUTH_MODE=token if it asks for a token, or unset RAY_ADDRESS to train on this machine alone"
            ) from None
        _note_missing_gpus(spec)
    else:
        if os.environ.get("RAY_AUTH_MODE") == "token" and not sends_tokens():
            raise UserError(
                "Ray was imported before the run and does not know RAY_AUTH_MODE=token, which the run sets: set this "
                "variable before Python starts, or call `trainjob.run` before `import ray`"
            )
        with without_unneeded_processes():
            local_ray.start(spec.worker_slots * threads + DATA_CPUS, OBJECT_STORE_BYTES, environment)
    interrupts.handle_again()  # Ray handles SIGTERM itself: it prints the stack of its native code
    silence_worker_deaths()
    for name in ("ray.train", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _note_missing_gpus(spec: TrainJobSpec) -> None:
    """Gives a Notice if a cluster that the user has started lacks GPUs, as workers would wait for them silently."""
    import ray

    wanted, found = spec.workers.count * spec.workers.gpus, int(ray.cluster_resources().get("GPU", 0))
    if found < wanted and not _made_by_operator():
        notify(
            f"the Ray cluster has {found} GPUs and spec.workers asks for {wanted}: training waits for the missing GPUs"
        )


def put(examples: "dict[str, Examples]") -> "Callable[[], dict[str, Examples]]":
    """Shares rows with workers on any machine. Returns a function that reads them there."""
    import ray

    return partial(ray.get, ray.put(examples))


def worker_resources(spec: TrainJobSpec, threads: int) -> dict[str, float]:
    """Ray's resources of one worker."""
    gpus = spec.workers.gpus
    return {"CPU": threads} | ({"GPU": gpus} if gpus else {}) | _worker_slot()


def _worker_slot() -> dict[str, float]:
    """The slot that a worker takes in the operator's pods, which count them: Ray would put as many workers into a pod
    as its CPUs allow."""
    return {WORKER_RESOURCE: 1} if on_cluster() and _made_by_operator() else {}


def wait_until_gone(nodes: Sequence[str]) -> None:
    """Waits until Ray knows that these nodes are gone, at most SECONDS_TO_LEAVE."""
    import ray

    deadline = time.monotonic() + SECONDS_TO_LEAVE
    while any(node["Alive"] and node["NodeID"] in nodes for node in ray.nodes()) and time.monotonic() < deadline:
        time.sleep(0.2)
