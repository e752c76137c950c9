"""Workers as actors of a Ray cluster, which Ray Train starts and watches."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trainjob.api import TrainJobSpec
from trainjob.data.batches.prepare import data_context
from trainjob.launch.fast.ray_internals import trainer_class
from trainjob.launch.ray_cluster import is_elastic, is_own_cluster, on_cluster, worker_resources
from trainjob.launch.worker_errors import WorkerError, first_failure, lost_a_worker, worker_error
from trainjob.storage import Folder, GuardedFileSystem, open_filesystem

if TYPE_CHECKING:
    from ray.train import Result

SECONDS_BETWEEN_RESIZES = 60.0
"""How long an elastic job's workers train at least before more of them are started in their place."""

SECONDS_TO_NOTICE = 5.0
"""How long a worker waits after losing its connection to another one, so that Ray first notices the other's death."""


def run_on_ray(
    work: Callable[[], Any],
    spec: TrainJobSpec,
    run: Folder,
    threads: int,
    datasets: Mapping[str, Any] | None = None,
    split: Sequence[str] = ("train",),
    callbacks: list[Any] | None = None,
    checkpoints: Any = None,
) -> "Result":
    """Calls `work` on every worker, once, and returns Ray Train's result.

    The `datasets` named in `split` are divided among the workers, `train` into equal shards; of the others, every
    worker gets all rows.

    Raises the exception of the first worker to fail.
    """
    from ray.train import RunConfig, ScalingConfig, WorkerGroupError

    from trainjob.launch.dataset_shards import DatasetShards

    options = data_context().execution_options
    parent, _, name = run.uri.rpartition("/")
    filesystem, path = open_filesystem(parent, run.endpoint)
    if "://" in parent:  # on a disk the folder's lock keeps other drivers away, and checkpoints are read in place
        filesystem = GuardedFileSystem(run)
    workers = spec.workers
    elastic = is_elastic(spec)
    trainer = trainer_class(is_own_cluster(), datasets is not None, elastic, on_cluster())(
        partial(_report_lost_connections_late, work),
        scaling_config=ScalingConfig(  # pyrefly: ignore[bad-argument-type]
            num_workers=(workers.minimum or workers.count, workers.count) if elastic else workers.count,  # pyrefly: ignore[bad-argument-type]
            elastic_resize_monitor_interval_s=SECONDS_BETWEEN_RESIZES,  # pyrefly: ignore[unexpected-keyword]
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
        dataset_config=DatasetShards(list(split), options),
    )
    try:
        return trainer.fit()
    except WorkerGroupError as error:
        raise first_failure([worker_error(*failure) for failure in error.worker_failures.items()]) from None


def _report_lost_connections_late(work: Callable[[], Any]) -> Any:
    """Calls `work`, and delays the error of a worker that has lost its connection to one that died, so that Ray Train
    names the worker that died."""
    try:
        return work()
    except WorkerError as error:
        if lost_a_worker(error):
            time.sleep(SECONDS_TO_NOTICE)
        raise
