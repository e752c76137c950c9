"""`trainjob plan`"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import printable_json, say

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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the rows, steps and memory that a TrainJob needs.

    Reads the rows as a run does, and computes a step without data and without weights.
    """
    from trainjob.api.load import load_trainjob
    from trainjob.cli.progress import preparing
    from trainjob.data.first_pass.fitting import tell_of_data
    from trainjob.driver.check import check_data
    from trainjob.plan.capacity import capacity_of
    from trainjob.plan.plan import make_plan

    job = load_trainjob(file, overrides)
    capacity = capacity_of(job.spec.workers, gpu_memory)
    with preparing(job.metadata.name):
        found = check_data(job)
        made = make_plan(job, found, capacity)
    if as_json:
        say(printable_json(made.model_dump_json(by_alias=True, indent=2)))
        return
    for name, text in _lines(made):
        say(f"{name:{_NAME_WIDTH}}{text}")
    if found.fitted is not None:
        tell_of_data(found.fitted)


def _lines(plan: "Plan") -> Iterator[tuple[str, str]]:
    from trainjob.formatting import bytes_, count, percent

    yield "rows", ", ".join(f"{name} {count(rows)}" for name, rows in plan.rows.items())
    if plan.classes is not None:
        yield "classes", count(plan.classes)
    if plan.cut_share is not None:
        yield "cut texts", percent(plan.cut_share)
    if plan.steps is not None:
        about = "" if plan.steps.is_exact else "about "
        if plan.steps.tokens is not None:
            longest = f"the longest row has {count(plan.steps.longest or 0)}"
            yield "tokens", f"{about}{count(plan.steps.tokens)} an epoch; {longest}"
        each = f"{count(plan.rows_per_worker or 0)} rows a worker" if plan.workers > 1 else ""
        packed = f", of {about}{count(plan.steps.rows)} rows" if plan.steps.rows != plan.rows["train"] else ""
        yield "steps", f"{about}{count(plan.steps.total)}; {count(plan.steps.per_epoch)} an epoch{packed}"
        if each:
            yield "workers", f"{count(plan.workers)}, {each}"
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
    for note in plan.notes:
        yield "note", note
