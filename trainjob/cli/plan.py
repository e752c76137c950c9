"""`trainjob plan`"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace, open_client
from trainjob.cli.doctor import finding_lines
from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import console, printable_json, say

if TYPE_CHECKING:
    from trainjob.plan.plan import Plan

_NAME_WIDTH = 13


def plan(
    file: TrainJobFile,
    overrides: Overrides,
    gpu_memory: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Memory of a GPU, such as 80Gi; by default that of this machine's GPU."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Also take a few real steps on this machine, and estimate the hours.")
    ] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Also show what nodes, quotas and queue of a cluster have for it now.")
    ] = False,
    context: Context = None,
    namespace: Namespace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the rows, steps and memory that a TrainJob needs.

    Reads the rows as a run does, and computes a step without data and without weights.
    """
    from trainjob.api.load import load_trainjob
    from trainjob.cli.progress import preparing
    from trainjob.data.first_pass.fitting import tell_of_data
    from trainjob.driver.check import check_data
    from trainjob.driver.worker_cpus import worker_threads
    from trainjob.plan.capacity import capacity_of
    from trainjob.plan.plan import make_plan

    job = load_trainjob(file, overrides)
    room = None
    if cluster or context is not None or namespace is not None:
        from trainjob.doctor.room import room_for

        room = room_for(open_client(context, namespace or job.metadata.namespace).connection, job)
    capacity = capacity_of(job.spec.workers, gpu_memory, room.gpu_memory if room is not None else None)
    with preparing(job.metadata.name):
        found = check_data(job)
        made = make_plan(job, found, capacity, worker_threads(job.spec) if measure else None)
    if as_json:
        found_there = {} if room is None else {"cluster": [each._asdict() for each in room.findings]}
        say(printable_json(json.dumps(made.model_dump(mode="json", by_alias=True) | found_there, indent=2)))
        return
    for name, text in _lines(made):
        say(f"{name:{_NAME_WIDTH}}{text}")
    for each in room.findings if room is not None else ():
        for line in finding_lines(each, console().width):
            say(line)
    if found.fitted is not None:
        tell_of_data(found.fitted)


def _lines(plan: "Plan") -> Iterator[tuple[str, str]]:
    from trainjob.formatting import bytes_, count, duration, percent

    yield "rows", ", ".join(f"{name} {count(rows)}" for name, rows in plan.rows.items())
    if plan.classes is not None:
        yield "classes", count(plan.classes)
    if plan.cut_share is not None:
        yield "cut texts", percent(plan.cut_share)
    if plan.steps is not None:
        about = "" if plan.steps.is_exact else "about "
        is_packed = plan.steps.rows != plan.rows["train"]
        if plan.steps.tokens is not None:
            longest = f"the longest row has {count(plan.steps.longest or 0)}"
            yield "tokens", f"{about}{count(plan.steps.tokens)} an epoch; {longest}"
        packed = f", of {about}{count(plan.steps.rows)} packed rows" if is_packed else ""
        total = f"{about if is_packed else ''}{count(plan.steps.total)}"
        yield "steps", f"{total}; {count(plan.steps.per_epoch)} an epoch{packed}"
    if plan.rows_per_worker is not None:
        yield "workers", f"{count(plan.workers)}, {count(plan.rows_per_worker)} rows of each batch a worker"
    if (need := plan.memory) is not None:
        shown = {"weights": need.weights, "gradients": need.gradients, "optimizer": need.optimizer}
        parts = [f"{name} {bytes_(size)}" for name, size in (shown | {"activations": need.activations}).items()]
        yield "memory", f"{bytes_(need.total)} a worker in {plan.precision}: {', '.join(parts)}"
    if plan.fits is not None and plan.capacity is not None:
        words = {"yes": "fits", "barely": "may not fit", "no": "does not fit"}[plan.fits]
        yield "GPU", f"{bytes_(plan.capacity)}: {words}"
        for each in plan.alternatives:
            settings = ", ".join(f"{path}: {str(value).lower()}" for path, value in each.settings.items())
            yield "", f"would fit: {settings} ({bytes_(each.total)})"
        if plan.fits == "no" and not plan.alternatives:
            yield "", "not with a smaller batch, activationCheckpointing or sharding over these workers either"
    if plan.memory_unknown is not None:
        yield "memory", plan.memory_unknown
    if plan.seconds_per_step is not None and plan.hours is not None:
        step = f"{duration(plan.seconds_per_step)} a step of one worker on this machine, without communication"
        yield "time", f"{duration(plan.hours * 3600)} without validation; {step}"
    for note in plan.notes:
        yield "note", note
