"""Workers as actors of a Ray cluster: the one that `RAY_ADDRESS` names, or one started on this machine for the run."""

import hashlib
import logging
import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trainjob
from trainjob import interrupts, local_ray
from trainjob.api import TrainJobSpec
from trainjob.api.cluster import JOB_FOLDER, WORKER_RESOURCE
from trainjob.data import Examples
from trainjob.data.prepare import data_context
from trainjob.errors import TransientError, notify
from trainjob.launch.fast import ray_worker
from trainjob.launch.fast.ray_internals import print_no_deaths, trainer_class
from trainjob.launch.worker_errors import WorkerError, first_failure, lost_a_worker, worker_error
from trainjob.storage import Folder, GuardedFileSystem, open_filesystem
from trainjob.versions import versions

if TYPE_CHECKING:
    from ray.train import Result

_Value = TypeVar("_Value")

DATA_CPUS = 2
"""CPUs that Ray is told of besides the workers': were there none, Ray Data would wait for ever to read."""

OBJECT_STORE_BYTES = 2 * 2**30

SECONDS_BETWEEN_SIZES = 60.0
"""How long an elastic job's workers train at least before they are started anew because there is room for more."""

SECONDS_FOR_PLACES = "20"
"""How long Ray Train waits for the places that it has counted for an elastic job's workers: a node may just be gone."""

SECONDS_TO_LEAVE = 20.0
"""How long other workers wait for a node to be gone that was about to go."""

SECONDS_TO_NOTICE = 5.0
"""How long a worker that has lost its connection to another waits: Ray is to notice first that the other has died."""

_LIBRARIES = ("torch._dynamo", "torch.utils.tensorboard.writer", "pandas")
"""What workers import besides the TrainJob's own: an optimizer does the first, rank 0 the second, Ray the third."""

_ENVIRONMENT = {
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths mean what they mean in the driver
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",  # print() writes to standard output, not into a log of Ray's
    "THP_MEM_ALLOC_ENABLE": "1",  # PyTorch's large arrays lie in huge pages: see docs/decisions/huge-pages.md
}
_OWN_ENVIRONMENT = {
    "RAY_prestart_worker_first_driver": "0",  # idle processes that no actor will take
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a process that waits for Ray's autoscaler to take a machine away
}
_RAYS_ENVIRONMENT = {"RAY_CLIENT_MODE": "0", "PYTHONBREAKPOINT": ""}
"""What Ray itself sets when it is imported and joins a cluster."""


def seconds_between_looks(workers: int) -> float:
    """How often Ray asks every worker how it goes: Ray's 2 s would delay each report and the end of a small run, while
    the answers of hundreds keep a CPU busy for longer."""
    return max(0.2, workers / 100)


def is_elastic(spec: TrainJobSpec) -> bool:
    """Whether training goes on with fewer workers than asked for. On one machine they come and go together."""
    return spec.workers.minimum is not None and on_cluster()


def set_environment(spec: TrainJobSpec) -> None:
    """Sets what Ray and PyTorch are to know, and beforehand what Ray would set. To be called before other threads work.

    A name that is new moves the table of all names, and whoever looks through it on another thread, as the AWS SDK
    does for every request, reads freed memory: https://pubs.opengroup.org/onlinepubs/9799919799/functions/setenv.html
    """
    environment = _ENVIRONMENT | _RAYS_ENVIRONMENT
    environment["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = f"{seconds_between_looks(spec.workers.count):g}"
    if is_elastic(spec):
        environment["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = SECONDS_FOR_PLACES
    if _is_own():
        environment |= _OWN_ENVIRONMENT
    if not on_cluster():
        environment |= local_ray.ENVIRONMENT
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def start_ray(spec: TrainJobSpec, threads: int, modules: Sequence[str] = ()) -> None:
    """Joins the cluster or starts one, quietly; its processes will have imported `modules` and PyTorch.

    Raises TransientError where it cannot be joined or does not start."""
    import ray

    environment = _runtime_environment(threads, modules)
    if on_cluster():
        try:
            ray.init(runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError:
            raise TransientError(
                f"no Ray cluster lets us in at RAY_ADDRESS={os.environ['RAY_ADDRESS']}: start it, set "
                "RAY_AUTH_MODE=token if it asks for a token, or unset RAY_ADDRESS to train on this machine alone"
            ) from None
        _say_what_is_missing(spec)
    else:
        local_ray.start(spec.places * threads + DATA_CPUS, OBJECT_STORE_BYTES, environment)
    interrupts.handle_again()  # Ray handles SIGTERM itself: it prints the stack of its native code
    print_no_deaths()
    for name in ("ray.train", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _runtime_environment(threads: int, modules: Sequence[str]) -> dict[str, str] | None:
    """Has Ray fork its processes, where every node of the cluster has what the driver has installed."""
    address = os.environ.get("RAY_ADDRESS", f"of {os.getpid()}")
    if sys.platform != "linux" or not (_is_own() or address.startswith("127.0.0.1:")):
        return None
    packages = ",".join([*modules, *_LIBRARIES])
    digest = hashlib.blake2b(repr((sys.executable, threads, packages, _state_of_libraries())).encode(), digest_size=8)
    name = f"trainjob {address} {digest.hexdigest()}"
    if _is_own():
        ray_worker.start_server(name, str(threads), packages, os.getpid())
    command = [sys.executable, "-I", "-S", ray_worker.__file__, name, str(threads), packages]
    return {"py_executable": shlex.join(command)}


def _state_of_libraries() -> tuple[dict[str, str], float]:
    """What changes when they do: a cluster may outlive an installation."""
    return versions(), max(file.stat().st_mtime for file in Path(trainjob.__file__).parent.rglob("*.py"))


def _say_what_is_missing(spec: TrainJobSpec) -> None:
    """Of a cluster that the user has started: workers wait for the GPUs that it has not, which may be for ever."""
    import ray

    wanted, found = spec.workers.count * spec.workers.gpus, int(ray.cluster_resources().get("GPU", 0))
    if found < wanted and not _made_by_operator():
        notify(f"the Ray cluster has {found} GPUs and spec.workers asks for {wanted}: training waits until there are")


def on_cluster() -> bool:
    """Whether there is a cluster to join, rather than one to start on this machine."""
    return "RAY_ADDRESS" in os.environ


def own_address() -> str:
    """Where workers reach this process: on a cluster, from other machines, too."""
    return socket.gethostbyname(socket.gethostname()) if on_cluster() else "127.0.0.1"


def put(examples: dict[str, Examples]) -> Callable[[], dict[str, Examples]]:
    """Shares rows with workers on any machine."""
    import ray

    return partial(ray.get, ray.put(examples))


def fit_on_ray(
    work: Callable[[], Any],
    spec: TrainJobSpec,
    run: Folder,
    threads: int,
    datasets: Mapping[str, Any] | None = None,
    split: Sequence[str] = ("train",),
    callbacks: list[Any] | None = None,
    checkpoints: Any = None,
) -> "Result":
    """Has `work` run on every worker, once, and returns Ray Train's result.

    Of `datasets`, those named in `split` are shared out between the workers, `train` equally; of the others, each gets
    all rows.

    Raises what the first worker to fail raised.
    """
    from ray.train import RunConfig, ScalingConfig, WorkerGroupError

    from trainjob.launch.shares import Shares

    options = data_context().execution_options
    parent, _, name = run.uri.rpartition("/")
    filesystem, path = open_filesystem(parent, run.endpoint)
    if "://" in parent:  # on a disk the folder's lock keeps other drivers away, and checkpoints are read in place
        filesystem = GuardedFileSystem(run)
    workers = spec.workers
    elastic = is_elastic(spec)
    trainer = trainer_class(_is_own(), uses_ray_data=datasets is not None, elastic=elastic)(
        partial(_name_the_first, work),
        scaling_config=ScalingConfig(  # pyrefly: ignore[bad-argument-type]
            num_workers=(workers.minimum or workers.count, workers.count) if elastic else workers.count,  # pyrefly: ignore[bad-argument-type]
            elastic_resize_monitor_interval_s=SECONDS_BETWEEN_SIZES,  # pyrefly: ignore[unexpected-keyword]
            use_gpu=workers.gpus > 0,
            resources_per_worker=worker_resources(spec, threads),
        ),
        run_config=RunConfig(  # pyrefly: ignore[bad-argument-type]
            name=name,
            storage_path=path,
            storage_filesystem=filesystem,
            callbacks=callbacks,
            checkpoint_config=checkpoints,
        ),
        datasets=dict(datasets or {}),
        dataset_config=Shares(list(split), options),
    )
    try:
        return trainer.fit()
    except WorkerGroupError as error:
        raise first_failure([worker_error(*failure) for failure in error.worker_failures.items()]) from None


def worker_resources(spec: TrainJobSpec, threads: int) -> dict[str, float]:
    """What a worker takes of its node."""
    gpus = spec.workers.gpus
    return {"CPU": threads} | ({"GPU": gpus} if gpus else {}) | _place()


def wait_until_gone(nodes: Sequence[str]) -> None:
    """Waits, but not for long, until Ray knows that these nodes are gone."""
    import ray

    deadline = time.monotonic() + SECONDS_TO_LEAVE
    while any(node["Alive"] and node["NodeID"] in nodes for node in ray.nodes()) and time.monotonic() < deadline:
        time.sleep(0.2)


def _name_the_first(work: Callable[[], Any]) -> Any:
    """Calls `work`. What it raises because another worker has died comes late: Ray then names that other worker."""
    try:
        return work()
    except WorkerError as error:
        if lost_a_worker(error):
            time.sleep(SECONDS_TO_NOTICE)
        raise


def in_thread(work: Callable[[], _Value]) -> "Future[_Value]":
    """Does `work` off the main thread, where Ray would take Ctrl-C for itself."""
    future: Future[_Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _is_own() -> bool:
    """Whether the cluster is there for this run alone and ends with it: started here, or by the operator."""
    return not on_cluster() or _made_by_operator()


def _made_by_operator() -> bool:
    return Path(JOB_FOLDER).exists()


def _place() -> dict[str, float]:
    """A worker's place, in pods that count them: Ray would put as many into a pod as its CPUs allow."""
    return {WORKER_RESOURCE: 1} if on_cluster() and _made_by_operator() else {}
