"""TrainJobs in columns, as kubectl prints them."""

import json
import math
import sys
from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.cli.output import printable, printable_json
from trainjob.formatting import done, score

if TYPE_CHECKING:
    from trainjob.cli.cluster_options import Format
    from trainjob.cluster.client import Change
    from trainjob.cluster.job import ClusterJob

GAP = 3
UNKNOWN = "<none>"
_STEPS = ((2 * 60, 1, "s"), (3 * 3600, 60, "m"), (2 * 86400, 3600, "h"), (math.inf, 86400, "d"))
"""The units of an age, each with the most seconds that are shown in it."""


class JobTable:
    """Prints jobs as they arrive; the first ones determine the widths of the columns. With `omits_empty`, columns that
    say nothing about them are left out."""

    def __init__(self, is_wide: bool, has_namespaces: bool, omits_empty: bool = False) -> None:
        self._is_wide, self._has_namespaces = is_wide, has_namespaces
        self._omits_empty = omits_empty
        self._widths: list[int] | None = None

    def print(self, jobs: Sequence["ClusterJob"]) -> None:
        now = datetime.now(UTC)
        rows = [self._cells(job, now) for job in jobs]
        if self._widths is None:
            shown = [not self._omits_empty or any(column) for column in zip(*rows, strict=True)]
            rows.insert(0, self._headings())
            columns = zip(zip(*rows, strict=True), shown, strict=True)
            self._widths = [max(map(len, column)) if is_shown else 0 for column, is_shown in columns]
        for row in rows:
            cells = [f"{cell:<{width + GAP}}" for cell, width in zip(row, self._widths, strict=True) if width]
            sys.stdout.write("".join(cells).rstrip() + "\n")
        sys.stdout.flush()

    def _headings(self) -> list[str]:
        first = ["NAMESPACE"] if self._has_namespaces else []
        more = ["METRIC", "TRIALS", "MESSAGE"] if self._is_wide else []
        return [*first, "NAME", "PHASE", "REASON", "PERCENT", "ETA", "WORKERS", "ATTEMPT", "AGE", *more]

    def _cells(self, job: "ClusterJob", now: datetime) -> list[str]:
        status, training = job.status, job.status.training
        workers, attempt = status.workers, status.attempt
        first = [job.namespace] if self._has_namespaces else []
        cells = [
            *first,
            job.name,
            "Deleting" if job.is_being_deleted else status.phase or UNKNOWN,
            status.reason or "",
            done(training.percent) if training is not None and training.percent is not None else "",
            age(training.eta) if training is not None and training.eta is not None and not job.has_ended else "",
            f"{workers.ready}/{workers.desired}" if workers is not None else "",
            str(attempt) if attempt is not None else "",
            age((now - job.created).total_seconds()),
        ]
        if self._is_wide:
            trials = training.tuning.ended if training is not None and training.tuning is not None else ""
            cells += [best_metric(job), trials, " ".join((status.message or "").split())]
        return [printable(cell) for cell in cells]


def best_metric(job: "ClusterJob") -> str:
    """The best checkpoint's metric, with its name."""
    best = job.status.training.best_checkpoint if job.status.training is not None else None
    return f"{best.metric} {score(best.value)}" if best is not None and best.metric and best.value is not None else ""


def age(seconds: float) -> str:
    """The age in one unit, as kubectl shows it: 45s, 12m, 30h, 9d."""
    unit, name = next((unit, name) for limit, unit, name in _STEPS if seconds < limit)
    return f"{max(0, int(seconds)) // unit}{name}"


def print_changes(
    changes: Iterable["Change"], output: "Format | None", table: JobTable, names: Set[str] = frozenset()
) -> None:
    """Prints the jobs, or those of these `names`, again whenever they change, for as long as there are changes."""
    for change in changes:
        jobs = [job for job in change.jobs if not names or job.name in names]
        if output is None or output == "wide":
            if jobs:
                table.print(jobs)
        else:
            for job in jobs:
                sys.stdout.write("---\n" if output == "yaml" else "")
                print_documents([job], output, is_list=False)
                sys.stdout.flush()


def print_documents(jobs: Iterable["ClusterJob"], output: "Format", is_list: bool) -> None:
    """Prints the jobs as YAML or JSON without `managedFields`, or their names alone."""
    found = list(jobs)
    if output == "name":
        sys.stdout.writelines(f"{printable(job.full_name)}\n" for job in found)
        return
    documents = [_without_managers(job.document) for job in found]
    shown: Any = {"apiVersion": "v1", "kind": "List", "items": documents} if is_list else documents[0]
    if output == "json":
        print(printable_json(json.dumps(shown, indent=4, ensure_ascii=False)))
    else:
        print(as_yaml_file(shown), end="")


def _without_managers(document: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}
