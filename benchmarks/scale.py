"""Measures what a run with many workers costs in its single processes: the driver, Ray Train's controller, rank 0.

The workers are fakes, threads of a few processes, so the figures are those of the one process that serves all of them.
docs/scale.md interprets them for 64 nodes of 8 GPUs.
"""

import argparse
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import ray

from trainjob.api import Checkpoints, Dataset, Source
from trainjob.api.training_status import TrainingStatus
from trainjob.data.first_pass import survey
from trainjob.data.read.bad_rows import BadRows
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.launch.ray_cluster import seconds_between_polls
from trainjob.progress.channel import ProgressReceiver, Sender
from trainjob.runs.checkpoints import MANIFEST, Manifest, SavedCheckpoints, checkpoint_name
from trainjob.runs.files import ATTEMPTS, CHECKPOINTS
from trainjob.runs.history import History
from trainjob.storage import Folder

REPEATS = 5
PROCESSES = 4
"""Processes of the fake workers."""


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall seconds and CPU seconds of this process, the best of several."""
    times: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(times)


@ray.remote(num_cpus=0)
class Workers:
    """Worker threads that answer status polls like Ray Train's workers."""

    def poll(self) -> dict[str, Any]:
        return {"running": True, "error": None, "training_report": None}


def looks(workers: int) -> str:
    """One poll of all workers by the controller."""
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    kind: Any = Workers
    actors = [kind.options(max_concurrency=-(-workers // PROCESSES)).remote() for _ in range(PROCESSES)]

    def look() -> None:
        ray.get([actors[number % PROCESSES].poll.remote() for number in range(workers)])

    look()
    wall, cpu = measured(look)
    ray.shutdown()
    interval = seconds_between_polls(workers)
    return (
        f"a look at all workers: {wall * 1000:.0f} ms, {cpu * 1000:.0f} ms of CPU; "
        f"every {interval:g} s {cpu / interval:.1%} of a core, every 0.2 s it would be {cpu / 0.2:.0%}"
    )


def listing(workers: int, kept: int, folder: Path) -> str:
    """Measures listing and reading when a checkpoint is saved, with one file per worker in every checkpoint."""
    run = Folder(str(folder / "run"))
    for number in range(1, kept + 1):
        name = checkpoint_name(number, 100 * number)
        files = {f"state/{rank:05d}": "0" * 64 for rank in range(workers)}
        manifest = Manifest(epoch=number, step=100 * number, metrics={"validation_loss": 1 / number}, files=files)
        (run / CHECKPOINTS / name).write(MANIFEST, manifest.model_dump_json().encode())
    saved = SavedCheckpoints(run, Checkpoints(metric="validation_loss", keep=kept))
    wall, _ = measured(saved.ranked)
    size = sum(file.stat().st_size for file in Path(run.uri).rglob(MANIFEST)) / kept
    return f"{kept} checkpoints listed, their manifests ({size / 1000:.0f} kB each) read: {wall * 1000:.0f} ms on disk"


def reporting(workers: int, messages: int = 20) -> str:
    """All workers report to one driver at once; in a real run, only rank 0 does."""
    seen = threading.Semaphore(0)
    with ProgressReceiver(lambda _: seen.release()) as receiver:
        since = time.perf_counter()
        cpu = time.process_time()

        def worker() -> None:
            sender = Sender(receiver.address)
            for step in range(messages):
                sender.send(TrainingStatus(stage="Training", step=step, loss=0.5), always=True)
            sender.close()

        threads = [threading.Thread(target=worker) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall, cpu = time.perf_counter() - since, time.process_time() - cpu
    arrived = sum(seen.acquire(blocking=False) for _ in range(workers * messages))
    return (
        f"{workers} reporters of {messages} messages each: {wall:.1f} s, {cpu:.1f} s of CPU on both sides, "
        f"{arrived} of {workers * messages} arrived"
    )


def metrics(records: int, folder: Path) -> str:
    """Measures the metrics written by a checkpoint after the given number of records."""
    run = Folder(str(folder / "metrics"))
    run.write(ATTEMPTS, b"{}")
    history = History(run, folder / "scratch")
    for step in range(1, records + 1):
        history.add("step", step, 1, {"loss": 0.5, "learning_rate": 1e-4, "samples_per_second": 1e4})
    history.flush()
    latest: list[int] = []

    def checkpoint() -> None:
        last = history.records[-1]["step"]
        for step in range(last + 1, last + 21):
            history.add("step", step, 1, {"loss": 0.5, "learning_rate": 1e-4, "samples_per_second": 1e4})
        before = time.time_ns()
        history.flush()
        changed = (file for file in Path(run.uri).rglob("*") if file.is_file() and file.stat().st_mtime_ns >= before)
        latest.append(sum(file.stat().st_size for file in changed))

    wall, _ = measured(checkpoint)
    total = sum(file.stat().st_size for file in Path(run.uri).rglob("*") if file.is_file())
    return (
        f"a checkpoint after {records:,} records: {wall * 1000:.0f} ms, {max(latest) / 1000:.0f} kB written of "
        f"{total / 1e6:.0f} MB that there are"
    )


def merging(rows: int, rows_of_a_task: int = 20_000) -> str:
    """Measures the driver's work on the results of the first pass."""
    chance = np.random.default_rng(0)
    numbers = {f"class-{number}": number for number in range(10)}

    def shares(_: Any, items: Iterable[Any]) -> Iterable[Any]:
        for _ in items:
            hashes = chance.integers(0, 2**64, rows_of_a_task, np.uint64)
            sample = survey.Sample[Any](1000)
            sample.add(hashes, str)
            labels = chance.integers(0, 10, rows_of_a_task)
            found = survey.Survey(labels, hashes, np.empty(0, np.uint8), sample.pruned())
            yield survey._ScannedTask(ClassLabels("label", numbers=numbers), found, BadRows())  # noqa: SLF001

    class Part:
        uri, size = "rows", 2**30

        def read(self, columns: Any) -> Iterable[Any]:
            return []

    dataset = Dataset(train=Source(uri="rows"), label="label")
    plan = survey.ScanPlan[Any](
        None, ClassLabels("label"), lambda _: survey.ScannedRows(np.empty(0, np.uint64), survey.nothing)
    )
    parts: list[Any] = [Part() for _ in range(rows // rows_of_a_task)]
    since, cpu = time.perf_counter(), time.process_time()
    found, target = survey.take_survey(dataset, parts, plan, shares, BadRows())
    found.divide(target, 0.1, seed=1)
    wall, cpu = time.perf_counter() - since, time.process_time() - cpu
    assert found.labels is not None
    size = found.hashes.nbytes + found.labels.nbytes
    return f"{rows:,} rows merged and divided: {wall:.1f} s, {cpu:.1f} s of CPU, {size / rows:.0f} bytes a row kept"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=512)
    parser.add_argument("--kept", type=int, default=10, help="checkpoints that are kept")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    print(f"{arguments.workers} workers\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        print("-", listing(arguments.workers, arguments.kept, folder), flush=True)
        print("-", metrics(arguments.records, folder), flush=True)
    print("-", reporting(arguments.workers), flush=True)
    print("-", merging(arguments.rows), flush=True)
    print("-", looks(arguments.workers), flush=True)


if __name__ == "__main__":
    main()
