"""Compares the operator's throughput, latency and idle cost with KubeRay and a bare client, on its own control plane.

The API server and KubeRay are real; no pods run. The operator, the bare client and KubeRay are measured one after
another, each without the others running. This one process creates the load and takes all measurements, so its own cost
is the same for all of them.
"""

import argparse
import asyncio
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psutil
from kubernetes.aio.client import ApiClient
from operator_bench import Aims, Bench, Figures, counted, on_a_control_plane, table
from operator_cluster import (
    RAY_JOBS,
    TRAIN_JOBS,
    Client,
    Object,
    Resource,
    Seen,
    at_once,
    cpu_seconds,
    namespace,
    peak_mb,
    percentile,
)
from operator_jobs import (
    RUNNING,
    create_same,
    has_ray_cluster,
    has_ray_job,
    is_running,
    make_finished,
    ray_jobs,
    report_progress,
    train_jobs,
)

from cluster.control_plane import ControlPlane
from cluster.jobs import document
from control_plane.operator_process import OperatorProcess, operator

SETTLE_SECONDS = 3
"""Seconds for the operator's work after the last status: Events, and reactions to its own writes."""


class OperatorBench(Bench):
    """Measures an operator with many TrainJobs at once, with one after another, and with finished ones."""

    def start_operator(self, jobs: Client) -> OperatorProcess:
        return OperatorProcess(self.control_plane, self.control_plane.folder, [jobs.namespace])

    def _servers(self) -> list[psutil.Process]:
        return [psutil.Process(self.control_plane.components[name].pid) for name in ("kube-apiserver", "etcd")]

    async def many_at_once(self, number: int, turn: int) -> None:
        """RayJobs by a bare client, then as many TrainJobs for the operator: timed from the first creation, including
        the cost of creating them, and from the time when all exist, with the operator paused until then."""
        async with namespace(self.client, f"bare-{turn}") as bare:
            bodies = ray_jobs(number, bare.namespace)
            since = time.perf_counter()
            await at_once([partial(bare.create, RAY_JOBS, body) for body in bodies])
            self.note("bare client: RayJobs a second", number / (time.perf_counter() - since))
        async with namespace(self.client, f"same-{turn}") as same:
            bodies = list(zip(train_jobs(number), ray_jobs(number, same.namespace), strict=True))
            since = time.perf_counter()
            await at_once([partial(create_same, same, *body) for body in bodies])
            self.note("bare client: the operator's writes a second", number / (time.perf_counter() - since))
        async with namespace(self.client, f"many-{turn}") as jobs:
            with operator(self.control_plane, self.control_plane.folder, [jobs.namespace]) as process:
                own, servers = psutil.Process(process.process.pid), self._servers()
                before = cpu_seconds(own), sum(map(cpu_seconds, servers))
                since, settled = await create_and_wait(jobs, TRAIN_JOBS, train_jobs(number), has_ray_job)
                self.note("operator: TrainJobs a second", number / (settled - since))
                await asyncio.sleep(SETTLE_SECONDS)
                self.note("operator: CPU ms a TrainJob", 1000 * (cpu_seconds(own) - before[0]) / number)
                spent = sum(map(cpu_seconds, servers)) - before[1]
                self.note("operator: CPU ms a TrainJob of API server and etcd", 1000 * spent / number)
        async with namespace(self.client, f"there-{turn}") as jobs:
            with operator(self.control_plane, self.control_plane.folder, [jobs.namespace]) as process:
                process.process.send_signal(signal.SIGSTOP)
                await at_once([partial(jobs.create, TRAIN_JOBS, body) for body in train_jobs(number)])
                waiting = asyncio.create_task(jobs.until_all(TRAIN_JOBS, number, has_ray_job))
                since = time.perf_counter()
                process.process.send_signal(signal.SIGCONT)
                self.note("operator, once all are there: TrainJobs a second", number / (await waiting - since))

    async def kuberay(self, number: int) -> None:
        """Measures KubeRay's own controller on the same RayJobs, with its default flags."""
        async with namespace(self.client, "kuberay") as jobs:
            self.control_plane.start("kuberay-operator", "--reconcile-concurrency=1")
            since, settled = await create_and_wait(jobs, RAY_JOBS, ray_jobs(number, jobs.namespace), has_ray_cluster)
            self.note("KubeRay: RayJobs a second", number / (settled - since))

    async def delays(self, samples: int) -> None:
        """Measures one TrainJob after another, with no other work."""
        async with namespace(self.client, "delays") as jobs:
            with operator(self.control_plane, self.control_plane.folder, [jobs.namespace]):
                made, told = Seen(jobs, RAY_JOBS, lambda _: True), Seen(jobs, TRAIN_JOBS, is_running)
                for number in range(samples):
                    name = f"job-{number}"
                    await asyncio.sleep(random.uniform(0.02, 0.2))
                    since = time.perf_counter()
                    await jobs.create(TRAIN_JOBS, document(name))
                    self.figures.setdefault("applied", []).append(await made.time(name) - since)
                    await asyncio.sleep(random.uniform(0.1, 0.3))
                    since = time.perf_counter()
                    await jobs.report(RAY_JOBS, name, RUNNING)
                    self.figures.setdefault("changed", []).append(await told.time(name) - since)
                made.end()
                told.end()
        for kind, name in {"applied": "apply → RayJob, ms", "changed": "RayJob's change → status, ms"}.items():
            values = self.figures.pop(kind)
            self.note(f"{name}, p50", 1000 * percentile(values, 0.5))
            self.note(f"{name}, p99", 1000 * percentile(values, 0.99))

    async def finished(self, number: int, seconds: float) -> None:
        """Measures a restart with finished TrainJobs whose RayJobs still exist, and then the idle operator."""
        async with namespace(self.client, "finished") as jobs:
            await at_once([partial(make_finished, jobs, body) for body in train_jobs(number)])
            before = await jobs.server_writes()
            since = time.perf_counter()
            process = self.start_operator(jobs)
            try:
                while counted(process) < number:
                    await asyncio.sleep(0.02)
                self.note("restart → ready, s", time.perf_counter() - since)
                await asyncio.sleep(15)  # for what a start leaves to do
                watched = psutil.Process(process.process.pid)
                spent = cpu_seconds(watched)
                await asyncio.sleep(seconds)
                self.note("finished: CPU, % of a core", 100 * (cpu_seconds(watched) - spent) / seconds)
                self.note("finished: RSS, MB", watched.memory_info().rss / 1e6)
                self.note("finished: most RSS, MB", peak_mb(watched.pid))
                self.note("finished: writes", await jobs.server_writes() - before)
            finally:
                process.kill()

    async def progress(self, number: int, seconds: float) -> None:
        """Measures jobs whose trainers report every 5 seconds."""
        async with namespace(self.client, "progress") as jobs:
            with operator(self.control_plane, self.control_plane.folder, [jobs.namespace]) as process:
                await create_and_wait(jobs, TRAIN_JOBS, train_jobs(number), has_ray_job)
                await at_once([partial(jobs.report, RAY_JOBS, f"job-{n}", RUNNING) for n in range(number)])
                await jobs.until_all(TRAIN_JOBS, number, is_running)
                trainers = [asyncio.create_task(report_progress(jobs, f"job-{n}")) for n in range(number)]
                await asyncio.sleep(10)
                watched = psutil.Process(process.process.pid)
                spent = cpu_seconds(watched)
                await asyncio.sleep(seconds)
                self.note("progress: CPU, % of a core", 100 * (cpu_seconds(watched) - spent) / seconds)
                for trainer in trainers:
                    trainer.cancel()


async def create_and_wait(
    jobs: Client, resource: Resource, bodies: list[dict[str, Any]], holds: Callable[[Object], bool]
) -> tuple[float, float]:
    """The times when the first was created, and when all of them satisfied `holds`."""
    waiting = asyncio.create_task(jobs.until_all(resource, len(bodies), holds))
    since = time.perf_counter()
    await at_once([partial(jobs.create, resource, body) for body in bodies])
    return since, await waiting


_OPERATOR, _BARE = "operator: TrainJobs a second", "bare client: RayJobs a second"
PEERS = {
    "operator / bare client": (_OPERATOR, _BARE),
    "operator, once all are there / bare client": ("operator, once all are there: TrainJobs a second", _BARE),
    "operator / bare client with the same writes": (_OPERATOR, "bare client: the operator's writes a second"),
    "operator / KubeRay": (_OPERATOR, "KubeRay: RayJobs a second"),
}
AIMS: Aims = {
    "operator / bare client": (True, 0.5),
    "operator / KubeRay": (True, 1.0),
    "apply → RayJob, ms, p99": (False, 100),
    "RayJob's change → status, ms, p99": (False, 150),
    "restart → ready, s": (False, 15),
    "finished: CPU, % of a core": (False, 1),
    "finished: RSS, MB": (False, 150),
    "finished: writes": (False, 0),
    "progress: CPU, % of a core": (False, 10),
}


async def measure(arguments: argparse.Namespace, control_plane: ControlPlane, client: ApiClient) -> Figures:
    control_plane.stop("kuberay-operator")
    bench = OperatorBench(control_plane, client)
    for turn in range(arguments.rounds):
        if "many" in arguments.parts:
            await bench.many_at_once(arguments.jobs, turn)
        if "delays" in arguments.parts:
            await bench.delays(arguments.samples)
        if "progress" in arguments.parts:
            await bench.progress(100, arguments.seconds)
        if "finished" in arguments.parts:
            await bench.finished(5 * arguments.jobs, arguments.seconds)
    if "kuberay" in arguments.parts:
        await bench.kuberay(arguments.jobs)
    return bench.figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--parts", nargs="+", default=["many", "delays", "progress", "finished", "kuberay"])
    figures = on_a_control_plane(partial(measure, parser.parse_args()))
    print(table(figures, AIMS, PEERS))


if __name__ == "__main__":
    main()
