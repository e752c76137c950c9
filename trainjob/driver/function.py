"""`model.function`: runs a Ray Train loop of the user's own on the workers."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ray.train import CheckpointConfig, Result

from trainjob.api import Checkpoints, TrainJob
from trainjob.code import UserCode
from trainjob.data import check_same_files
from trainjob.doing import DOING
from trainjob.driver.summarize import hardware
from trainjob.interrupts import in_thread, result_of
from trainjob.kinds.function.rows import raw_datasets
from trainjob.launch.ray_cluster import start_ray
from trainjob.launch.ray_tasks import RayTasks
from trainjob.launch.ray_train import run_on_ray
from trainjob.progress.channel import Address
from trainjob.runs.attempts import Attempts, begin_training
from trainjob.runs.files import FITTED
from trainjob.runs.history import last_metrics, read_history
from trainjob.runs.summary import Summary, TrainingWorkers
from trainjob.storage import Folder
from trainjob.versions import versions
from trainjob.worker.function_reports import ReportCallback, checkpoint_uri
from trainjob.worker.log_capture import LogTarget
from trainjob.worker.user_function import find_function, run_function


def train_function(
    job: TrainJob,
    run: Folder,
    *,
    code: UserCode | None,
    source: Path,
    attempts: Attempts,
    driver: Address,
    threads: int,
    retry: Callable[[Callable[[], Result]], Result],
    started: float,
    on_start: Callable[[], None],
) -> Summary:
    """Runs the function on every worker. Its checkpoints are Ray Train's, in the run's folder. Its module is in `code`
    or, without, in the folder `source`. `on_start` is called before the workers start."""
    spec, function = job.spec, job.spec.model.function
    assert function is not None
    find_function(function, result_of(in_thread(partial(code.activate, source))) if code is not None else source)
    if spec.dataset is not None:
        check_same_files(spec, run / FITTED)
    DOING.begin("starting Ray")
    start_ray(spec, threads)
    tasks = RayTasks()
    tasks.started.set_result(None)
    since = time.perf_counter()
    datasets = raw_datasets(spec, tasks) if spec.dataset is not None else {}
    attempts = begin_training(run, attempts)
    prepared = time.perf_counter()
    on_start()
    fit = partial(
        run_on_ray,
        partial(run_function, function, code, source, run, LogTarget(run, attempts.count, driver)),
        spec,
        run,
        threads,
        datasets,
        callbacks=[ReportCallback(run, driver)],
        checkpoints=_checkpoint_config(spec.checkpoints),
    )
    result = result_of(in_thread(partial(retry, fit)))
    ended = time.perf_counter()
    total, records = time.time() - started, read_history(run)
    training = seconds_before(attempts.training_since, records) + ended - prepared
    return Summary(
        name=job.metadata.name,
        started=attempts.started,
        finished=datetime.now(UTC),
        attempts=attempts.count,
        workers=TrainingWorkers(
            count=spec.workers.count, device="gpu" if spec.workers.gpus else "cpu", threads=threads
        ),
        metrics=last_metrics(records),
        code=code.version.name if code is not None else None,
        checkpoint=checkpoint_uri(run, result.checkpoint) if result.checkpoint is not None else None,
        seconds={"start": total - (ended - since), "data": prepared - since, "training": training},
        versions=versions(),
        hardware=hardware("cpu"),
    )


def seconds_before(training_since: Sequence[float], records: Iterable[Mapping[str, Any]]) -> float:
    """Training time of all attempts but the last, each up to its last report; they began to train at
    `training_since`."""
    times = [record["time"] for record in records]
    return sum(
        max((each for each in times if begun <= each < next_begun), default=begun) - begun
        for begun, next_begun in pairwise(training_since)
    )


def _checkpoint_config(spec: Checkpoints) -> CheckpointConfig:
    """Ray Train's rules from `spec.checkpoints`; without it, all checkpoints are kept."""
    if not spec.model_fields_set:
        return CheckpointConfig()
    return CheckpointConfig(
        num_to_keep=spec.keep,
        checkpoint_score_attribute=spec.metric,
        checkpoint_score_order="min" if spec.lower_is_better else "max",
    )
