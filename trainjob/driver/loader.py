"""`dataset.loader: auto`: whether a run trains in local processes or through Ray."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.batches.prepare import bytes_of_sets
from trainjob.data.read.fingerprint import fingerprints
from trainjob.driver.early_workers import AUTO, RAY, needs_ray
from trainjob.formatting import bytes_
from trainjob.runs.files import TRAINJOB
from trainjob.runs.folder import has_results, read_job, write_job
from trainjob.storage import Folder

SHARE = 0.5
"""The part of the free memory, and of the free disk for temporary files, that prepared rows may take."""


def resolve_loader(job: TrainJob, run: Folder, fresh: bool) -> TrainJob:
    """`job` with the loader of the run that it continues. In a new run, `auto` is Ray Data where Ray is needed anyway.
    Otherwise `auto` stays until the rows have been counted."""
    dataset = job.spec.dataset
    if dataset is None or dataset.loader != AUTO:
        return job
    if not fresh and run.exists(TRAINJOB) and has_results(run):
        begun = read_job(run).spec.dataset
        return job if begun is None else _with_loader(job, begun.loader)
    return _with_loader(job, RAY) if needs_ray(job.spec) else job


def record_loader(run: Folder, loader: str) -> None:
    """Writes the chosen loader into the run's TrainJob, so that later attempts use it."""
    write_job(run, _with_loader(read_job(run), loader))


def reason_by_files(spec: TrainJobSpec) -> str | None:
    """The reason to read the rows with Ray's tasks instead of one process, as text; None if one process can read
    them."""
    size, room = sum(each.bytes for each in fingerprints(spec).values()), free_memory()
    if size <= room:
        return None
    return f"the data takes {bytes_(size)}, more than this machine's free memory of {bytes_(room)}"


def reason_by_rows(spec: TrainJobSpec, fitted: Fitted) -> str | None:
    """The reason that the prepared rows do not fit on this machine, as text; None if they do."""
    size = sum(bytes_of_sets(spec, fitted).values())
    for room, noun in ((free_memory(), "free memory"), (disk_usage(tempfile.gettempdir()).free, "free temporary disk")):
        if size > SHARE * room:
            return f"the prepared rows take {bytes_(size)}, more than half of this machine's {noun} of {bytes_(room)}"
    return None


def free_memory() -> int:
    """Bytes that this process may still use: of the machine's memory and of its container's, without page cache."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return max(0, min([machine, *available, *free_in_cgroups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))]))


def free_in_cgroups(groups: Path, root: Path) -> Iterator[int]:
    """Bytes that each control group of this process still allows, of version 1 or 2. A container sees its own group as
    the root."""
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = root / controllers
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        folder = top / path.lstrip("/")
        for each in (folder, *(parent for parent in folder.parents if parent.is_relative_to(top))):
            limit, used, details = (each / name for name in (*names, "memory.stat"))
            with suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
                cache = dict(entry.split() for entry in details.read_text().splitlines())
                yield int(limit.read_text()) - int(used.read_text()) + int(cache.get("inactive_file", 0))


def _with_loader(job: TrainJob, loader: str) -> TrainJob:
    assert job.spec.dataset is not None
    dataset = job.spec.dataset.model_copy(update={"loader": loader})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"dataset": dataset})})
