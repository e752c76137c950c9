"""`trainjob describe`"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING

from trainjob.cli.cluster_options import Context, JobOrRun, Namespace, open_client, repeated
from trainjob.cli.named_run import is_path
from trainjob.cli.output import console, say
from trainjob.client.folders import open_folder
from trainjob.errors import notify

if TYPE_CHECKING:
    from trainjob.api.trainjob_status import TrainJobStatus
    from trainjob.cluster.client import ClusterClient
    from trainjob.cluster.job import ClusterJob, Event

_LABEL = 12
"""Width of the labels."""
_SAVED_AT_THE_END = ("Cancelled", "Suspended", "Suspending", "Queued")
"""Reasons for which the pods are deleted: the workers then save a checkpoint that the driver no longer reports."""
_MAX_METRICS = 12
_MIN_WIDTH = 60
_KEPT = "\N{NO-BREAK SPACE}"
"""A blank at which a line does not end."""


def describe(name: JobOrRun, context: Context = None, namespace: Namespace = None) -> None:
    """Show on one screen how a TrainJob or a run is, and what to do."""
    if is_path(name):
        from trainjob.cli.run_jobs import job_of

        say("\n".join(run_description(job_of(open_folder(name), name), console().width)))
        return
    client = open_client(context, namespace)
    job = client.job(name)
    options = repeated(context, namespace)
    say("\n".join(description(job, _events(client, job), console().width, datetime.now(UTC), options)))


def _events(client: "ClusterClient", job: "ClusterJob") -> "list[Event]":
    """The job's Events; none if the user may not list them. Then a note says so."""
    from trainjob.cluster.errors import NotPermitted

    try:
        return client.events(job)
    except NotPermitted as error:
        notify(f"without the Events: {error}")
        return []


def description(
    job: "ClusterJob", events: "Sequence[Event]", width: int, now: datetime, options: str = ""
) -> list[str]:
    """A job in lines of at most `width` columns, unless a word is longer; the suggested commands get `options`, which
    name the cluster and namespace."""
    from trainjob.cluster.advice import causes, next_steps
    from trainjob.cluster.timeline import timeline

    lines = [line for label, text in _facts(job, now) for line in _fact(label, text, width)]
    failure = job.status.training.failure if job.status.training is not None else None
    for cause in causes(job.status):
        lines += ["", f"Why: {cause.reason}"]
        said_by_meaning = cause.meaning.startswith(cause.message)
        for text in (cause.meaning,) if said_by_meaning else (cause.message, cause.meaning):
            lines += _indented(text, width)
        if cause.remedy:
            lines += _indented(f"What to do: {cause.remedy}", width)
    if failure is not None and job.status.phase == "Failed" and failure.traceback:
        lines += ["", "Traceback", *(f"  {line}" for line in failure.traceback.rstrip().splitlines())]
    lines += ["", "Timeline", *(f"  {line}" for line in event_lines(timeline(job, events), width - 2))]
    return [*lines, "", "Next", *(f"  {step}" for step in next_steps(job, options))]


def run_description(run: "ClusterJob", width: int) -> list[str]:
    """A run in lines of at most `width` columns, unless a word is longer."""
    states = {"Succeeded": "finished", "Running": "running on this machine", "Failed": "failed"}
    state = states.get(run.status.phase or "", "not finished; no process of this machine is running it")
    facts = [
        ("Run", run.name),
        ("State", f"{state}; started {run.status.attempt} time{'s' if run.status.attempt != 1 else ''}"),
        ("Started", f"{run.created:%Y-%m-%d %H:%M:%SZ}{_duration(run.status)}"),
        *([("Error", run.status.message)] if run.status.message else []),
        *_training(run),
    ]
    training = run.status.training
    has_model = training is not None and training.best_checkpoint is not None
    steps = {
        "Succeeded": [*([f"trainjob predict {run.name} DATA"] if has_model else []), f"trainjob report {run.name}"],
        "Running": [f"trainjob logs {run.name} -f", f"trainjob cancel {run.name}"],
    }.get(run.status.phase or "", [f"trainjob logs {run.name}", "trainjob run FILE   # continues it"])
    return [*(line for fact in facts for line in _fact(*fact, width)), "", "Next", *(f"  {step}" for step in steps)]


def event_lines(events: "Iterable[Event]", width: int) -> list[str]:
    """Each Event with its time, in lines of at most `width` columns, unless a word is longer."""
    found = list(events)
    longest = max((len(event.reason) for event in found), default=0)
    lines: list[str] = []
    for event in found:
        times = f" (x{event.count})" if event.count > 1 else ""
        head = f"{event.time:%Y-%m-%d %H:%M:%SZ}  {event.reason:<{longest}}  "
        texts = wrap(" ".join(f"{event.message}{times}".split()), max(width - len(head), 30)) or [""]
        lines += [f"{head}{texts[0]}".rstrip(), *(f"{'':{len(head)}}{text}" for text in texts[1:])]
    return lines


def _facts(job: "ClusterJob", now: datetime) -> Iterator[tuple[str, str]]:
    from trainjob.cli.job_table import age

    status = job.status
    yield "TrainJob", f"{job.name} in {job.namespace}"
    yield "Phase", _phase(job)
    if status.phase == "Running" and status.message:  # otherwise below, as why it waits or has ended
        yield "Message", status.message
    yield "Age", age((now - job.created).total_seconds()) + _duration(status)
    yield from _training(job)
    if status.workers is not None:
        yield "Workers", f"{status.workers.ready} of {status.workers.desired} ready"
    if status.interruptions is not None:
        lost = status.interruptions
        times = f"{lost.count} time{'s' if lost.count != 1 else ''}"
        yield "Interrupted", f"{times}; last {lost.last_time:%Y-%m-%d %H:%M:%SZ}: {lost.last_reason}"
    for each in status.notifications:
        if each.error is not None:
            outcome = "was not sent" if each.state == "Failed" else "is not sent yet"
            yield "Notify", f"{each.event} {outcome} to receiver {each.receiver}: {each.error}"
    if job.run is not None:
        yield "Run", job.run
    for problem in job.problems:
        yield "Unreadable", problem


def _phase(job: "ClusterJob") -> str:
    status = job.status
    if status.phase is None:
        return f"none yet: {job.message}"
    attempts = f", attempt {status.attempt} of {1 + job.spec.get('retries', 0)}" if status.attempt is not None else ""
    reason = f" ({status.reason})" if status.reason not in (None, status.phase) else ""
    deleted = ", being deleted" if job.is_being_deleted else ""
    return f"{status.phase}{reason}{attempts}{deleted}"


def _duration(status: "TrainJobStatus") -> str:
    from trainjob.formatting import duration

    if status.start_time is None or status.completion_time is None:
        return ""
    return f"; took {duration((status.completion_time - status.start_time).total_seconds())}"


def _training(job: "ClusterJob") -> Iterator[tuple[str, str]]:
    from trainjob.cli.status_text import first_of, position, speed, stage_text
    from trainjob.formatting import done, score
    from trainjob.runs.history import beside_epoch

    training = job.status.training
    if training is None:
        return
    yield "Training", stage_text(training)
    if not job.has_ended:
        yield "Progress", _facts_in_a_row(position(training))
        yield "Speed", _facts_in_a_row(speed(training))
    elif training.percent is not None:
        yield "Progress", f"{done(training.percent)}%, step {training.step:,}"
    if training.tuning is not None:
        best = training.tuning.best
        at_best = f"; best {best.number}: {score(best.value)}" if best is not None else ""
        yield "Trials", f"{training.tuning.ended}{at_best}"
    scores = training.evaluation or beside_epoch(training.metrics)
    metrics = [f"{name} {score(value)}" for name, value in scores.items()]
    yield "Metrics", _facts_in_a_row(first_of(metrics, _MAX_METRICS))
    for label, found in (("Best", training.best_checkpoint), ("Latest", training.latest_checkpoint)):
        if found is not None and found.uri:
            value = f", {found.metric}{_KEPT}{score(found.value)}" if found.metric and found.value is not None else ""
            if label == "Latest" and job.status.reason in _SAVED_AT_THE_END:
                yield label, f"step {found.step:,} or later, in {found.uri.rpartition('/')[0]}"
            else:
                yield label, f"step {found.step:,}{value}: {found.uri}"
    if training.failure is not None and training.failure.message not in (job.status.message or ""):
        process = "the driver" if training.failure.rank is None else f"worker {training.failure.rank}"
        yield "Failure", f"{process}: {training.failure.exception}: {training.failure.message}"


def _fact(label: str, text: str, width: int) -> list[str]:
    texts = _wrapped(text, max(width, _MIN_WIDTH) - _LABEL)
    return [f"{label if number == 0 else '':<{_LABEL}}{line}" for number, line in enumerate(texts)]


def _facts_in_a_row(facts: "Iterable[str]") -> str:
    """The facts with commas; a line may end only after a comma."""
    return ", ".join(fact.replace(" ", _KEPT) for fact in facts)


def _indented(text: str, width: int) -> list[str]:
    return [f"  {line}" for line in _wrapped(text, max(width, _MIN_WIDTH) - 2)]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words: paths can be copied."""
    text = re.sub(r"\s+", " ", text, flags=re.ASCII)
    lines = wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_KEPT, " ") for line in lines]
