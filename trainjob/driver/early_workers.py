"""Starts the workers of this machine before the driver imports its own libraries, so that both import in parallel."""

from collections.abc import Generator
from contextlib import contextmanager

from trainjob.api import TrainJobSpec
from trainjob.driver.worker_cpus import worker_threads
from trainjob.kinds import PACKAGES
from trainjob.launch.local import LocalWorkers
from trainjob.launch.ray_cluster import on_cluster, set_environment

AUTO, LOCAL, RAY = "auto", "dataLoader", "rayData"
"""Values of `dataset.loader`."""

LOCAL_MODULES = ("torch._dynamo", "torch.utils.tensorboard.writer")
"""Modules of PyTorch that local workers import later: an optimizer needs the first, rank 0 the second."""


@contextmanager
def early_workers(spec: TrainJobSpec) -> Generator[LocalWorkers | None]:
    """The workers for `trainjob.driver.run.run`, to be imported and called in the block; None if they are to be Ray's.
    They end with the block."""
    if spec.dataset is None or spec.dataset.loader == RAY or needs_ray(spec):
        yield None
        return
    set_environment(spec)
    with local_workers(spec) as workers:
        yield workers


def needs_ray(spec: TrainJobSpec) -> bool:
    """Whether Ray is needed, whatever the loader: on a cluster, for a search and for a function."""
    return on_cluster() or spec.tuning is not None or spec.model.facts.is_users_loop


def local_workers(spec: TrainJobSpec) -> LocalWorkers:
    return LocalWorkers(spec.workers, worker_threads(spec), [*LOCAL_MODULES, *worker_modules(spec)])


def worker_modules(spec: TrainJobSpec) -> list[str]:
    """Modules that workers import and that do not import Ray. transformers takes seconds, so it is among them only for
    models that need it."""
    kind = spec.model.kind
    return ["trainjob.worker.train", f"{PACKAGES[kind.facts.field]}.kind", *kind.worker_modules]
