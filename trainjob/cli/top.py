"""`trainjob top`"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainjob.cli.cluster_options import AllNamespaces, Context, Namespace, open_client
from trainjob.cli.output import console, printable, say
from trainjob.formatting import done

if TYPE_CHECKING:
    from trainjob.cluster import ClusterJob

_COLUMNS = ("NAMESPACE", "NAME", "STATE", "PERCENT", "ETA", "STEP", "RATE", "WORKERS", "GPUS", "BEST", "UPDATED")
_LESS_NEEDED = ("UPDATED", "BEST", "GPUS", "WORKERS", "STEP")
"""Columns that are left out on a narrow terminal, in this order."""
_SHORT_NAME = 16
"""Names are shortened to this length before columns are left out."""
_GAP = 3


def top(context: Context = None, namespace: Namespace = None, all_namespaces: AllNamespaces = False) -> None:
    """Show how the unfinished TrainJobs on a cluster progress.

    On a terminal, the table follows the jobs until Ctrl-C; elsewhere it is printed once.
    """
    client = open_client(context, namespace)
    within = None if all_namespaces else client.namespace
    screen = console()
    nothing = f"No unfinished TrainJobs in {f'the namespace {within}' if within else 'any namespace'}."
    if not screen.is_terminal or screen.is_dumb_terminal:
        jobs = _unfinished(client.jobs(within))
        if jobs:
            print("\n".join(job_lines(jobs, all_namespaces, datetime.now(UTC), screen.width)))
        else:
            say(nothing, error=True)
        return
    from rich.live import Live
    from rich.text import Text

    found: dict[str, ClusterJob] = {}

    def render() -> Text:
        jobs = _unfinished(found.values())
        lines = job_lines(jobs, all_namespaces, datetime.now(UTC), screen.width) if jobs else [nothing]
        return Text("\n".join(lines), no_wrap=True)

    with Live(console=screen, get_renderable=render, refresh_per_second=1):
        for change in client.watch(within):
            kept = {uid: job for uid, job in found.items() if uid not in change.gone}
            found = kept | {job.uid: job for job in change.jobs}


def _unfinished(jobs: "Iterable[ClusterJob]") -> "list[ClusterJob]":
    return sorted((job for job in jobs if not job.has_ended), key=lambda job: (job.namespace, job.name))


def job_lines(jobs: "Iterable[ClusterJob]", has_namespaces: bool, now: datetime, width: int) -> list[str]:
    """Headings and a line for each job. If they do not fit into `width`, some columns are left out."""
    rows = [dict(zip(_COLUMNS, _COLUMNS, strict=True)), *(_cells(job, now) for job in jobs)]
    columns = [name for name in _COLUMNS if has_namespaces or name != "NAMESPACE"]
    widths = {name: max(len(row.get(name, "")) for row in rows) for name in columns}

    def room_for_name() -> int:
        return width - sum(widths[name] + _GAP for name in widths if name != "NAME")

    for name in _LESS_NEEDED:
        if room_for_name() < min(widths["NAME"], _SHORT_NAME):
            del widths[name]
    widths["NAME"] = min(widths["NAME"], max(room_for_name(), _SHORT_NAME))
    gap = " " * _GAP
    return [
        gap.join(_shortened(row.get(name, ""), size).ljust(size) for name, size in widths.items()).rstrip()
        for row in rows
    ]


def _cells(job: "ClusterJob", now: datetime) -> dict[str, str]:
    """The cells by the names of their columns; empty ones may be missing."""
    from trainjob.cli.job_table import age, best_metric

    status, training = job.status, job.status.training
    cells = {"NAMESPACE": job.namespace, "NAME": job.name}
    cells["STATE"] = "Deleting" if job.is_being_deleted else status.reason or ""
    if status.workers is not None:
        cells["WORKERS"] = f"{status.workers.ready}/{status.workers.desired}"
        if gpus := job.spec.get("workers", {}).get("gpus", 0):
            cells["GPUS"] = str(gpus * status.workers.ready)
    if training is not None:
        cells["PERCENT"] = done(training.percent) if training.percent is not None else ""
        cells["STEP"] = f"{training.step:,}" + (f"/{training.steps:,}" if training.steps else "")
        cells["BEST"] = best_metric(job)
        if status.phase == "Running":
            cells["STATE"] = training.phase.name if training.phase is not None else training.stage
            cells["ETA"] = age(training.eta) if training.eta is not None else ""
            cells["RATE"] = _rate(training.tokens_per_second, "tokens") or _rate(training.samples_per_second, "samples")
            cells["UPDATED"] = age((now - training.updated_time).total_seconds()) if training.updated_time else ""
    return {name: printable(cell) for name, cell in cells.items()}


def _rate(number: float | None, unit: str) -> str:
    return f"{number:,.0f} {unit}/s" if number is not None else ""


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
