"""Workers as actors of a Ray cluster: the one that `RAY_ADDRESS` names, or one started on this machine for the run."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import TrainJobSpec
from trainjob.api.cluster import JOB_FOLDER, WORKER_RESOURCE
from trainjob.data import Examples
from trainjob.errors import PassingError
from trainjob.progress.channel import Address
from trainjob.storage import Folder, open_filesystem
from trainjob.training.outcome import first_failure, told

if TYPE_CHECKING:
    from ray.train import Result
    from ray.train.torch import TorchTrainer

DATA_CPUS = 2
"""CPUs that Ray is told of besides the workers': were there none, Ray Data would wait for ever to read."""

OBJECT_STORE_BYTES = 2 * 2**30

_ENVIRONMENT = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",  # the default of 2 s delays every report and the end
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths mean what they mean in the driver
    "RAY_TRAIN_METRICS_ENABLED": "0",
}
_OWN_ENVIRONMENT = {
    "RAY_prestart_worker_first_driver": "0",  # idle processes that no actor will take
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a process that waits for Ray's autoscaler to take a machine away
}
_RAYS_ENVIRONMENT = {"RAY_CLIENT_MODE": "0", "PYTHONBREAKPOINT": ""}
"""What Ray itself sets when it is imported and joins a cluster,"""
_RAYS_LOCAL_ENVIRONMENT = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""and when it starts one on this machine."""


def set_environment() -> None:
    """Sets what Ray is to know, and beforehand what it would set later. To be called before other threads work.

    A name that is new moves the table of all names, and whoever looks through it on another thread, as the AWS SDK
    does for every request, reads freed memory: https://pubs.opengroup.org/onlinepubs/9799919799/functions/setenv.html
    """
    environment = _ENVIRONMENT | _RAYS_ENVIRONMENT
    if _is_own():
        environment |= _OWN_ENVIRONMENT
    if not on_cluster():
        environment |= _RAYS_LOCAL_ENVIRONMENT
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def start_ray(spec: TrainJobSpec, threads: int) -> None:
    """Joins the cluster or starts one, quietly. Raises UserError where the cluster cannot be joined."""
    import ray
    from ray._private import worker

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if on_cluster():
        try:
            ray.init(**quiet)
        except ConnectionError:
            raise PassingError(
                f"no Ray cluster lets us in at RAY_ADDRESS={os.environ['RAY_ADDRESS']}: start it, set "
                "RAY_AUTH_MODE=token if it asks for a token, or unset RAY_ADDRESS to train on this machine alone"
            ) from None
    else:
        ray.init(
            address="local",
            num_cpus=spec.workers.count * threads + DATA_CPUS,
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            **quiet,
        )
    worker.print_to_stdstream = lambda *_, **__: None  # prints a dead worker's end on standard output
    for name in ("ray.train", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)


def on_cluster() -> bool:
    """Whether there is a cluster to join, rather than one to start on this machine."""
    return "RAY_ADDRESS" in os.environ


def put(examples: dict[str, Examples]) -> Callable[[], dict[str, Examples]]:
    """Shares rows with workers on any machine."""
    import ray

    return partial(ray.get, ray.put(examples))


def start_on_ray(
    work: Callable[[], Any],
    spec: TrainJobSpec,
    run: Folder,
    threads: int,
    retries: int,
    driver: Address,
    datasets: Mapping[str, Any] | None = None,
    split: Sequence[str] = ("train",),
    callbacks: list[Any] | None = None,
    checkpoints: Any = None,
) -> "Future[Result]":
    """Has `work` run on every worker, again after a failure up to `retries` times.

    Of `datasets`, those named in `split` are shared out between the workers; of the others, each gets all rows.

    Gives Ray Train's result, or raises what the first worker to fail raised.
    """
    from ray.data import DataContext
    from ray.train import DataConfig, RunConfig, ScalingConfig, WorkerGroupError

    from trainjob.training.launch.failure_policy import CountingPolicy

    options = DataContext.get_current().execution_options
    options.preserve_order = True
    parent, _, name = run.uri.rpartition("/")
    filesystem, path = open_filesystem(parent, run.endpoint)
    gpus = spec.workers.gpus
    trainer = _trainer_class(CountingPolicy(retries, run, driver), asks_for_room=datasets is not None or not _is_own())(
        work,
        scaling_config=ScalingConfig(
            num_workers=spec.workers.count,
            use_gpu=gpus > 0,
            resources_per_worker={"CPU": threads} | ({"GPU": gpus} if gpus else {}) | _place(),
        ),
        run_config=RunConfig(
            name=name,
            storage_path=path,
            storage_filesystem=filesystem,
            callbacks=callbacks,
            checkpoint_config=checkpoints,
        ),
        datasets=dict(datasets or {}),
        dataset_config=DataConfig(datasets_to_split=list(split), execution_options=options),
    )

    def fit() -> Any:
        try:
            return trainer.fit()
        except WorkerGroupError as error:
            raise first_failure([told(*failure) for failure in error.worker_failures.items()]) from None

    return _in_thread(fit)


def _is_own() -> bool:
    """Whether the cluster is there for this run alone and ends with it: started here, or by the operator."""
    return not on_cluster() or _made_by_operator()


def _made_by_operator() -> bool:
    return Path(JOB_FOLDER).exists()


def _place() -> dict[str, float]:
    """A worker's place, in pods that count them: Ray would put as many into a pod as its CPUs allow."""
    return {WORKER_RESOURCE: 1} if on_cluster() and _made_by_operator() else {}


def _trainer_class(failure_policy: Any, asks_for_room: bool) -> "type[TorchTrainer]":
    """Ray Train's trainer with a failure policy of our own, and without processes that only serve others: one that
    tells Ray Data and Ray's autoscaler what room the workers want, and in a cluster of the run's own the one that
    cleans up after it."""
    from ray.train.torch import TorchTrainer
    from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback

    from trainjob.training.launch.scaling_policy import SilentPolicy

    class Trainer(TorchTrainer):
        def _initialize_and_run_controller(self, **arguments: Any) -> "Result":
            arguments["failure_policy"] = failure_policy
            if not asks_for_room:
                arguments["scaling_policy"] = SilentPolicy(self.scaling_config)
            return super()._initialize_and_run_controller(**arguments)

        def _create_default_callbacks(self) -> list[Any]:
            callbacks = super()._create_default_callbacks()
            if not _is_own():
                return callbacks
            return [callback for callback in callbacks if not isinstance(callback, PlacementGroupCleanerCallback)]

    return Trainer


def _in_thread(work: Callable[[], Any]) -> "Future[Any]":
    """Does `work` off the main thread, where Ray would take Ctrl-C for itself."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
