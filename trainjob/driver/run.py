"""`trainjob run`: from a TrainJob to a trained model on this machine, or as the driver of a Ray cluster."""

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.split_folders import as_begun, with_split_folders
from trainjob.doing import DOING
from trainjob.driver.built_in import Retry, Training
from trainjob.driver.predicted_sources import add_sources
from trainjob.driver.retries import is_retryable, with_retries
from trainjob.driver.summarize import final_fields, reached, summarize, write_pages, write_results
from trainjob.errors import StorageError, Superseded, UserError, listed, notify
from trainjob.evaluation import Scores
from trainjob.launch.ray_cluster import on_cluster, own_address, set_environment
from trainjob.launch.worker_errors import failure_of
from trainjob.progress.channel import Address, Receiver
from trainjob.progress.snapshots import OnStatus, Snapshots
from trainjob.runs.comparison import Comparison
from trainjob.runs.contents import Contents, read_contents
from trainjob.runs.files import BASELINES, MODEL, PREDICTIONS, REPORT
from trainjob.runs.folder import (
    Attempts,
    begin_attempt,
    changed_fields,
    check_same_spec,
    clear_results,
    locked,
    read_job,
    reads_data,
    replace_baselines,
    run_folder,
)
from trainjob.runs.owner import Owner
from trainjob.runs.summary import Summary, read_summary
from trainjob.scratch import sweep
from trainjob.storage import Folder


@dataclass(frozen=True)
class Finished:
    """A run that has come to its end."""

    run: Folder
    summary: Summary
    evaluation: dict[str, Scores]
    """Of the best checkpoint, by part of the data."""
    comparison: Comparison | None
    """With the baselines; None where there are none."""
    already: bool
    """Whether it had finished before: nothing was trained now."""


def run(
    job: TrainJob,
    *,
    source: Path,
    started: float,
    fresh: bool = False,
    on_status: OnStatus = lambda _: None,
    on_output: Callable[[str], None] = lambda _: None,
    retries: Callable[[], int] | None = None,
) -> Finished:
    """Trains `job`, or continues the run of its name from its latest checkpoint.

    `source` is the folder that the YAML lies in, where a function's module is looked for; `started` is when the
    command started, in seconds since 1970; `on_output` gets each line that rank 0 of a function prints; `retries`
    says what `spec.retries` is by now, where it may change. Raises UserError for what the user can mend, and
    WorkerError for what a worker raised in its last attempt. Superseded is a UserError of which nothing is told
    to `on_status`.
    """
    set_environment(job.spec)
    sweep()
    snapshots = Snapshots(on_status, job.spec.workers.count)
    allowed = retries or (lambda: job.spec.retries)
    owner = Owner(run_folder(job))
    try:
        finished = _run(job, owner, source, started, fresh, snapshots, on_output, allowed)
    except Exception as error:
        failure = owner.cause_of(error)
        if isinstance(failure, Superseded):  # how the run goes is for the other to say
            snapshots.close()
            raise failure from None
        snapshots.end(
            message="", eta=None, phase=None, failure=failure_of(error, is_retryable(job, owner.run, error, allowed()))
        )
        raise
    except KeyboardInterrupt:
        snapshots.close()
        raise
    snapshots.end(**final_fields(job, finished.run, finished.summary, finished.evaluation))
    return finished


def _run(
    job: TrainJob,
    owner: Owner,
    source: Path,
    started: float,
    fresh: bool,
    snapshots: Snapshots,
    on_output: Callable[[str], None],
    retries: Callable[[], int],
) -> Finished:
    folder = owner.run
    has_finished = not fresh and read_summary(folder) is not None
    if not has_finished:
        _check_gpus(job)
    job, folders = resolve_split_folders(job, folder, fresh)
    with nullcontext() if has_finished else locked(folder):  # a finished run may lie on a disk that only can be read
        if not has_finished:
            if not fresh:  # what is refused must not end a run that is under way
                check_same_spec(folder, job)
            owner.claim()
        if fresh:
            clear_results(folder)
        if read_summary(folder) is not None:
            check_same_spec(folder, job)
            contents = read_contents(folder)
            assert contents.summary is not None
            if not folder.exists(REPORT):  # the attempt that finished it ended before it was written
                with suppress(StorageError):
                    write_pages(folder)
            snapshots.take_up(reached(job, contents.records, contents.trials))
            comparison = _taken_up(job, folder, contents, snapshots)
            return Finished(folder, contents.summary, contents.evaluation, comparison, already=True)
        attempts = begin_attempt(folder, job)
        snapshots.preparing(None if job.spec.model.facts.is_users_loop else 0.0)
        retry = partial(
            with_retries, job=job, run=folder, attempts=attempts, on_retry=snapshots.restarting, retries=retries
        )
        with Receiver(snapshots.add, own_address(), on_output, lambda steps: snapshots.trial(steps)) as receiver:
            if job.spec.model.facts.is_users_loop:
                from trainjob.driver.function import train_function

                threads = worker_threads(job.spec)
                on_start = snapshots.starting
                summary = train_function(
                    job, folder, source, attempts, receiver.address, threads, retry, started, on_start
                )
                snapshots.finishing()
                write_results(folder, summary, None)
                return Finished(folder, summary, {}, None, already=False)
            return _run_model(job, folder, attempts, receiver.address, retry, snapshots, started, folders)


def resolve_split_folders(job: TrainJob, folder: Folder, fresh: bool) -> tuple[TrainJob, list[str]]:
    """The TrainJob with the split folders of its training rows as its sets, and notes on them; once its run has read
    them, with those."""
    dataset = job.spec.dataset
    notes: list[str] = []
    if dataset is None:
        return job, notes
    if not (fresh or reads_data(folder, job)):
        begun = read_job(folder).spec.dataset
        dataset = dataset if begun is None else as_begun(dataset, begun)
    else:
        dataset, notes = with_split_folders(dataset, job.spec.storage.endpoint if job.spec.storage else None)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"dataset": dataset})}), notes


def _check_gpus(job: TrainJob) -> None:
    """Raises UserError where this machine lacks the GPUs that the workers ask for."""
    if job.spec.workers.gpus and not on_cluster():
        import torch

        from trainjob.worker.devices import check_gpus

        check_gpus(job.spec.workers, torch.cuda.device_count())


def _run_model(
    job: TrainJob,
    folder: Folder,
    attempts: Attempts,
    driver: Address,
    retry: Retry,
    snapshots: Snapshots,
    started: float,
    folders: list[str],
) -> Finished:
    note_slow_precision(job.spec)
    threads = worker_threads(job.spec)
    training = Training(job.spec, folder, attempts.count, driver, threads, retry, snapshots.starting, folders)
    if job.spec.tuning is not None:
        from trainjob.driver.tuned import train_tuned

        tuned = train_tuned(job, training, snapshots)
        outcome, fitted = tuned.outcome, tuned.fitted
        seconds = {"data": training.data_time.seconds, "tuning": tuned.searched} | outcome.seconds
        summary = summarize(tuned.job, outcome, attempts, fitted, training.threads, seconds)
    else:
        outcome, fitted = training.train()
        start = training.seconds_to_start(outcome.entered, started)
        seconds = {"start": start, "data": training.data_time.seconds} | outcome.seconds
        summary = summarize(job, outcome, attempts, fitted, training.threads, seconds)
    snapshots.finishing()
    if folder.exists(f"{PREDICTIONS}/{MODEL}.parquet"):
        _add_sources(job, folder, fitted)
    write_results(folder, summary, outcome)
    sets = {"validation": outcome.validation, "test": outcome.test}
    evaluation = {name: scores for name, scores in sets.items() if scores is not None}
    return Finished(folder, summary, evaluation, _compared(job, folder, snapshots), already=False)


def _taken_up(job: TrainJob, folder: Folder, contents: Contents, snapshots: Snapshots) -> Comparison | None:
    """The comparison of a finished run with the baselines of `job`, computed anew where these have changed. Gives a
    Notice of other fields that have changed, which have no effect any more."""
    changed = [path for path in changed_fields(contents.job, job) if not path.startswith("spec.baselines")]
    if changed:
        notify(f"the run has finished: these fields have changed and have no effect: {listed(changed)}")
    if not job.spec.model.facts.baselines or job.spec.baselines == contents.job.spec.baselines:
        return contents.comparison
    names = job.spec.baselines.named if job.spec.baselines is not None else []
    from trainjob.report.render import write_report

    notify(f"spec.baselines has changed: computing {listed(names)}" if names else "spec.baselines has become empty")
    with locked(folder):
        comparison = _compared(job, folder, snapshots)
        if names and comparison is None:  # it failed, and was told
            return contents.comparison
        replace_baselines(folder, contents.job, job.spec.baselines)
        if not names:
            folder.delete(BASELINES)
        write_report(folder)
    return comparison


def _add_sources(job: TrainJob, folder: Folder, fitted: Fitted) -> None:
    """The model is trained: where its predictions' rows cannot be read once more, they do without their sources."""
    try:
        add_sources(job.spec, folder, fitted)
    except Superseded:
        raise
    except UserError as error:
        notify(f"the predictions do not say which rows they are for: {error}")


def _compared(job: TrainJob, folder: Folder, snapshots: Snapshots) -> Comparison | None:
    """The model beside the baselines. The run has finished already: whatever goes wrong here does not fail it."""
    names = job.spec.baselines.named if job.spec.baselines is not None else []
    if not names:
        return None
    snapshots.comparing()
    from trainjob.baselines.compare import compare_with_baselines
    from trainjob.report.render import write_report

    try:
        comparison = compare_with_baselines(job, folder, names)
        DOING.begin("writing the report")
        write_report(folder)
    except (Exception, KeyboardInterrupt) as error:
        said = "stopped" if isinstance(error, KeyboardInterrupt) else error
        notify(f"the baselines could not be computed: {said}; `trainjob baseline {folder.uri}` tries it again")
        return None
    return comparison


def worker_threads(spec: TrainJobSpec) -> int:
    """CPU threads of each worker: what the spec says, or an even share of this machine's cores; one on a cluster."""
    share = 1 if on_cluster() else len(os.sched_getaffinity(0)) / spec.places
    return max(1, int(spec.workers.cpus or share))


def note_slow_precision(spec: TrainJobSpec) -> None:
    """Gives a Notice where the workers have no GPUs and their CPUs only emulate the precision. What CPUs the workers of
    a cluster have is not known here."""
    precision = spec.training.precision
    if spec.workers.gpus:
        return
    if precision == "fp16":
        who = "CPUs"
    elif precision == "bf16" and not on_cluster() and _cpu_emulates_bfloat16():
        who = "this machine's CPU"
    else:
        return
    notify(
        f"spec.training.precision is {precision}, which {who} can only emulate, many times as slowly as float32: "
        "take auto, or set spec.workers.gpus to 1"
    )


def _cpu_emulates_bfloat16() -> bool:
    import torch

    from trainjob.precision import multiplies_bfloat16

    return not multiplies_bfloat16(torch.device("cpu"))
