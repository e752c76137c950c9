"""Measures the operator on a large cluster: memory, startup time and latency of a new TrainJob beside many others, and
with many namespaces.

The API server and etcd are real; KubeRay, the controllers and pods do not run. The existing TrainJobs are copies of two
that the operator itself has brought to Running and Succeeded, with their RayJobs. They are written directly into etcd
in the API server's format, because creating them by requests would take an hour. The operator creates their
NetworkPolicies at its first start; the second start is measured. At full size, set GOMEMLIMIT=15GiB and GOGC=50 for the
API server, which needs about 10 GB and would otherwise take more than twice as much.
"""

import argparse
import asyncio
import base64
import itertools
import json
import random
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import psutil
from kubernetes.aio.client import ApiClient, CoreV1Api, V1Namespace, V1ObjectMeta
from operator_bench import Aims, Bench, Figures, counted, on_a_control_plane, table
from operator_cluster import RAY_JOBS, TRAIN_JOBS, Client, Seen, cpu_seconds, peak_mb, percentile
from operator_jobs import RUNNING, is_running

from cluster.control_plane import ControlPlane
from cluster.jobs import document
from control_plane.operator_process import OperatorProcess, operator
from trainjob_operator.reconcile import MAX_REQUEUE_SECONDS

COMPLETE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
AIMS: Aims = {
    "many: start → all known, s": (False, 20),
    "many: most RSS, MB": (False, 200),
    "many: writes": (False, 0),
    "many: new TrainJob → RayJob, ms, p99": (False, 100),
    "namespaces: new TrainJob → RayJob, ms, p99": (False, 100),
    "namespaces: most RSS, MB": (False, 300),
}


class Stored:
    """The etcd entries of a TrainJob and its RayJob."""

    def __init__(self, url: str, namespace: str, name: str) -> None:
        self._url, self._namespace, self._name = url, namespace, name
        keys = (f"/registry/trainjob.dev/trainjobs/{namespace}/{name}", f"/registry/ray.io/rayjobs/{namespace}/{name}")
        self._values = {key: self._get(key) for key in keys}

    def copy(self, count: int, namespaces: list[str]) -> tuple[str, str]:
        """Writes `count` copies with different names and UIDs, spread over the namespaces. Returns namespace and name
        of the last one."""
        for first in range(0, count, 50):
            numbers = range(first, min(first + 50, count))
            puts = [put for number in numbers for put in self._puts(number, namespaces[number % len(namespaces)])]
            self._call("txn", {"success": [{"requestPut": put} for put in puts]})
            if first % 1000 == 0:
                print(f"  {first} of {count} copies of {self._name} are written", flush=True)
        return namespaces[(count - 1) % len(namespaces)], f"{self._name}-{count - 1}"

    def _puts(self, number: int, namespace: str) -> Iterator[dict[str, str]]:
        own = json.loads(next(iter(self._values.values())))["metadata"]["uid"]
        uid = str(uuid4())
        for key, value in self._values.items():
            text = value.replace(own, uid).replace(self._namespace, namespace)
            new = json.loads(text.replace(self._name, f"{self._name}-{number}"))
            if new["kind"] == "RayJob":
                new["metadata"]["uid"] = str(uuid4())
            folder = key.rsplit("/", 2)[0]
            yield {
                "key": _encoded(f"{folder}/{namespace}/{self._name}-{number}"),
                "value": _encoded(json.dumps(new, separators=(",", ":")) + "\n"),
            }

    def _get(self, key: str) -> str:
        (found,) = self._call("range", {"key": _encoded(key)})["kvs"]
        return base64.b64decode(found["value"]).decode()

    def _call(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{self._url}/v3/kv/{call}", json.dumps(body).encode(), timeout=60) as response:
            return json.load(response)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class ScaleBench(Bench):
    """Measures an operator with very many TrainJobs, or in very many namespaces."""

    def __init__(self, control_plane: ControlPlane, client: ApiClient) -> None:
        super().__init__(control_plane, client)
        self._begun = self._said = time.monotonic()

    async def namespace(self, name: str) -> Client:
        await CoreV1Api(self.client).create_namespace(V1Namespace(metadata=V1ObjectMeta(name=name)))
        return Client(self.client, name)

    async def templates(self) -> tuple[Stored, Stored]:
        """A running TrainJob and a succeeded one, as the operator leaves them."""
        jobs = await self.namespace("of-templates")
        with operator(self.control_plane, self.control_plane.folder, [jobs.namespace]):
            for name, status in (("unfinished-one", RUNNING), ("finished-one", COMPLETE)):
                made = Seen(jobs, RAY_JOBS, lambda _: True)
                told = Seen(
                    jobs, TRAIN_JOBS, lambda job: is_running(job) or job.get("status", {}).get("phase") == "Succeeded"
                )
                await jobs.create(TRAIN_JOBS, document(name))
                await made.time(name)
                await jobs.report(RAY_JOBS, name, status)
                await told.time(name)
                made.end()
                told.end()
            await asyncio.sleep(3)
        url = self.control_plane.etcd_url
        return Stored(url, jobs.namespace, "unfinished-one"), Stored(url, jobs.namespace, "finished-one")

    async def many(self, unfinished: int, finished: int, samples: int) -> None:
        jobs, (of_running, of_complete) = await self.namespace("many"), await self.templates()
        new = await self.namespace("new")  # with a watch of few objects: that of all others is much to read
        total = unfinished + finished
        await self.until_served(
            of_running.copy(unfinished, [jobs.namespace]), of_complete.copy(finished, [jobs.namespace])
        )
        process = OperatorProcess(self.control_plane, self.control_plane.folder, [])
        try:
            await self.known(process, total)
            await self.delays("many, just started", [new], samples // 3)
            await self.quiet(process)
            await self.delays("many", [new], samples)
            await self.quiet(process)
        finally:
            process.kill()
        total += samples // 3 + samples
        before, since = await jobs.server_writes(), time.perf_counter()
        process = OperatorProcess(self.control_plane, self.control_plane.folder, [])
        try:
            watched = psutil.Process(process.process.pid)
            await self.known(process, total)
            self.note("many: start → all known, s", time.perf_counter() - since)
            self.note("many: CPU until all are known, s", cpu_seconds(watched))
            await self.quiet(process)
            self.note("many: start → all looked at, s", time.perf_counter() - since)
            self.note("many: writes", await jobs.server_writes() - before)
            spent, begun = cpu_seconds(watched), time.perf_counter()
            await asyncio.sleep(MAX_REQUEUE_SECONDS + 60)  # in which it looks at all of them once more
            self.note("many: CPU, % of a core", 100 * (cpu_seconds(watched) - spent) / (time.perf_counter() - begun))
            self.note("many: RSS, MB", watched.memory_info().rss / 1e6)
            self.note("many: most RSS, MB", peak_mb(watched.pid))
        finally:
            process.kill()

    async def namespaces(self, count: int, samples: int) -> None:
        """Measures an operator restricted to its own namespaces, with ten TrainJobs in each."""
        names = [f"team-{number}" for number in range(count)]
        clients = [await self.namespace(name) for name in names]
        await self.until_served(*(stored.copy(5 * count, names) for stored in await self.templates()))
        since = time.perf_counter()
        process = OperatorProcess(self.control_plane, self.control_plane.folder, names)
        try:
            await self.known(process, 10 * count)
            self.note("namespaces: start → all known, s", time.perf_counter() - since)
            await self.quiet(process)
            await self.delays("namespaces", random.sample(clients, min(count, 10)), max(1, samples // 10))
            self.note("namespaces: most RSS, MB", peak_mb(process.process.pid))
        finally:
            process.kill()

    async def until_served(self, *last: tuple[str, str]) -> None:
        """Waits until the API server's caches, which see direct writes to etcd with a delay, contain these last
        TrainJobs and RayJobs."""
        for (group, version, plural), (place, name) in itertools.product((TRAIN_JOBS, RAY_JOBS), last):
            path = f"/apis/{group}/{version}/namespaces/{place}/{plural}/{name}?resourceVersion=0"
            headers = {"Accept": "application/json"}
            await self.client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            while (await self.client.call_api("GET", self.client.configuration.host + path, headers)).status != 200:
                self.say(f"the API server does not know {plural} {name} yet")
                await asyncio.sleep(0.5)

    async def delays(self, what: str, places: list[Client], samples: int) -> None:
        """Measures one new TrainJob after another beside all others, with the given number in each namespace."""
        values = list[float]()
        for jobs in places:
            made = Seen(jobs, RAY_JOBS, lambda _: True)
            await asyncio.sleep(1)
            for number in range(samples):
                name = f"new-{uuid4().hex[:8]}-{number}"
                await asyncio.sleep(random.uniform(0.02, 0.2))
                since = time.perf_counter()
                await jobs.create(TRAIN_JOBS, document(name))
                values.append(await made.time(name) - since)
            made.end()
        self.note(f"{what}: new TrainJob → RayJob, ms, p50", 1000 * percentile(values, 0.5))
        self.note(f"{what}: new TrainJob → RayJob, ms, p99", 1000 * percentile(values, 0.99))

    async def known(self, process: OperatorProcess, count: int) -> None:
        """Waits until the operator is ready and has seen the given number of TrainJobs."""
        while (found := counted(process)) < count:
            assert process.process.poll() is None, process.log.read_text()[-2000:]
            self.say(f"the operator knows {found:g} of {count} TrainJobs")
            await asyncio.sleep(0.2)

    async def quiet(self, process: OperatorProcess) -> None:
        """Waits until the operator's queue has been empty for a while."""
        calm = 0
        while calm < 5:
            depth = next(
                line for line in process.get("/metrics").splitlines() if line.startswith("trainjob_queue_depth ")
            )
            calm = calm + 1 if depth.endswith(" 0.0") else 0
            self.say(f"{depth} in the operator's queue")
            await asyncio.sleep(1)

    def say(self, what: str) -> None:
        """Prints the progress every ten seconds."""
        if time.monotonic() > self._said + 10:
            self._said = time.monotonic()
            print(f"  {self._said - self._begun:.0f} s: {what}", flush=True)


async def measure(arguments: argparse.Namespace, control_plane: ControlPlane, client: ApiClient) -> Figures:
    for name in ("kuberay-operator", "kube-controller-manager"):
        control_plane.stop(name)
    bench = ScaleBench(control_plane, client)
    if arguments.namespaces:
        await bench.namespaces(arguments.namespaces, arguments.samples)
    else:
        await bench.many(arguments.unfinished, arguments.finished, arguments.samples)
    return bench.figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unfinished", type=int, default=10_000)
    parser.add_argument("--finished", type=int, default=20_000)
    parser.add_argument("--namespaces", type=int, default=0, help="measure with so many namespaces instead")
    parser.add_argument("--samples", type=int, default=300)
    print(table(on_a_control_plane(partial(measure, parser.parse_args())), AIMS))


if __name__ == "__main__":
    main()
