"""Measures TrainJobs on the cluster of $KUBECONFIG, created by `make kind`.

It measures the time to the first step, alternating with a hand-written RayJob (bare/); the time until a job trains
again after a pod was killed; the time until the status says why a job cannot start; and the images.

Pod times come from the pods' status, in whole seconds; step times come from the training processes.
"""

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from operator_bench import Notebook, table

from cluster.client import Cluster
from e2e.object_store import BUCKET, ObjectStore, object_store
from e2e.train_jobs import TrainJobs
from kind.cluster import REGISTRY, KindCluster
from kind.engine import docker, sh
from tiny_sets import write_texts

ROOT = Path(__file__).parents[1]
BARE = Path(__file__).with_name("bare")
EPOCHS = 12
"""Epochs of a job whose pods are killed."""


class ClusterBench(Notebook):
    """A cluster and its measurements."""

    def __init__(self, cluster: Cluster, store: ObjectStore) -> None:
        super().__init__()
        self.cluster, self.store = cluster, store

    def note_start(self, whose: str, jobs: TrainJobs, applied: float, first_step: float, ready: float) -> None:
        started = driver_start(jobs)
        self.note(f"{whose}: apply → pods ready", ready - applied)
        self.note(f"{whose}: → job taken by Ray", started - ready)
        self.note(f"{whose}: → first step", first_step - started)
        self.note(f"{whose}: apply → first step", first_step - applied)

    def start(self, turn: int) -> None:
        """Measures a TrainJob and the RayJob, one after the other."""
        for measure in (self.ours, self.bare) if turn % 2 == 0 else (self.bare, self.ours):
            with namespace(self.cluster, self.store) as jobs:
                measure(jobs)

    def ours(self, jobs: TrainJobs) -> None:
        applied = time.time()
        jobs.submit(**jobs.texts(epochs=1, loader="rayData"))
        ready = until_ready(jobs, applied, 3)
        jobs.until_phase("Succeeded")
        self.note_start("TrainJob", jobs, applied, step_times(jobs)[0], ready)

    def bare(self, jobs: TrainJobs) -> None:
        code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job", "namespace": jobs.namespace}}
        jobs.cluster.apply(code | {"data": {"train.py": (BARE / "train.py").read_text()}})
        folder = f"{BUCKET}/{jobs.namespace}"
        ray_job = (BARE / "rayjob.yaml").read_text().replace("IMAGE", trainer_image(jobs)).replace("RUNS", folder)
        applied = time.time()
        jobs.kubectl("apply", "-f", "-", stdin=ray_job)
        ready = until_ready(jobs, applied, 3)
        jobs.kubectl("wait", "rayjob/job", "--for=jsonpath={.status.endTime}", "--timeout=600s")
        self.note_start("RayJob", jobs, applied, float(self.store.read(f"{folder}/first-step")), ready)

    def worker_killed(self, _: int) -> None:
        with namespace(self.cluster, self.store) as jobs:
            train_a_while(jobs)
            killed = time.time()
            jobs.kill(jobs.pods("worker")[0])
            ready = until_ready(jobs, killed, 1)
            assert jobs.until_phase("Succeeded")["attempt"] == 1
            again = resumed(step_times(jobs))
        self.note("worker killed: → its pod is ready again", ready - killed)
        self.note("worker killed: → training again", again - killed)
        self.note("worker killed: training again after the pod", again - ready)

    def head_killed(self, _: int) -> None:
        with namespace(self.cluster, self.store) as jobs:
            train_a_while(jobs)
            killed = time.time()
            jobs.kill(jobs.pods("head")[0])
            jobs.until_phase("Retrying")
            retrying = time.time()
            jobs.until_true(lambda status: status["training"]["stage"] == "Preparing", "the new driver's first word")
            preparing = time.time()
            jobs.until_true(
                lambda status: "continues" in status.get("training", {}).get("message", ""), "training again"
            )
            ready = max(ready_times(jobs))
            jobs.until_phase("Succeeded")
            again = resumed(step_times(jobs))
        self.note("head killed: → Retrying", retrying - killed)
        self.note("head killed: → the new driver's first word", preparing - killed)
        self.note("head killed: → pods ready", ready - killed)
        self.note("head killed: → training again", again - killed)

    def waiting(self, _: int) -> None:
        """Measures the time until the status explains why a job cannot start, one job at a time."""
        with namespace(self.cluster, self.store) as jobs:
            for name, (spec, *reasons) in what_is_missing(jobs).items():
                applied = time.time()
                jobs.submit(name, **spec)
                jobs.until_waiting(name, *reasons)
                self.note(f"{name} is not there: apply → the status says so", time.time() - applied)
                jobs.kubectl("delete", "trainjob", name)

    def images(self, turn: int) -> None:
        """Builds both images from a copy with changed code, pushes them, and has a node pull them."""
        for target in ("operator", "trainer"):
            if turn == 0:
                self.build(target)  # for the layers below
            seconds, image = self.build(target)
            self.note(f"{target} image: code changed → in the registry", seconds)
            with namespace(self.cluster, self.store) as jobs:
                pulled, size = pull(jobs, image)
            self.note(f"{target} image: pulled by a node", pulled)
            self.note(f"{target} image: MB, compressed", size / 1e6)
            self.note(f"{target} image: MB, on disk", size_on_disk(f"trainjob-{target}") / 1e6)

    def build(self, target: str) -> tuple[float, str]:
        """Seconds to build and push the image, and its name."""
        with tempfile.TemporaryDirectory() as folder:
            pack = ["git", "-c", "tar.umask=0022", "archive", "HEAD"]  # as in a checkout: layers depend on modes
            archive = subprocess.run(pack, cwd=ROOT, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
            for package in ("trainjob", "operator/trainjob_operator"):
                with open(Path(folder, package, "__init__.py"), "a") as file:
                    file.write(f"# {secrets.token_hex()}\n")
            code = f"from kind.images import build_project; print(build_project({target!r}, {REGISTRY!r}))"
            since = time.perf_counter()
            image = sh(sys.executable, "-c", code, env={"PYTHONPATH": f"{folder}/hack"})
            return time.perf_counter() - since, image


@contextmanager
def namespace(cluster: Cluster, store: ObjectStore) -> Generator[TrainJobs]:
    """A new namespace; the next one starts after its pods are deleted."""
    name = f"bench-{secrets.token_hex(4)}"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, store.secret(name))
    try:
        yield TrainJobs(cluster, name, store)
    finally:
        cluster.kubectl("delete", "namespace", name)


def what_is_missing(jobs: TrainJobs) -> dict[str, tuple[Any, ...]]:
    """Fields of TrainJobs whose pods lack something, and the reasons expected in their status."""
    image = {"pods": {"image": f"{REGISTRY}/there-is-none:1"}}
    gpus = {"workers": {"count": 8, "perPod": 8, "gpus": 1}}
    secret = {"storage": {**jobs.storage(), "secretName": "there-is-none"}}
    return {
        "image": (image, "ErrImagePull", "ImagePullBackOff"),
        "gpus": (gpus, "Unschedulable"),
        "secret": (secret, "CreateContainerConfigError"),
    }


def train_a_while(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(EPOCHS), retries=2)
    jobs.until_true(lambda status: status.get("training", {}).get("step", 0) >= 15, "step 15")


def until_ready(jobs: TrainJobs, since: float, number: int) -> float:
    """The time when the last of `number` Ray pods created after `since` was ready."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        times = ready_times(jobs, since)
        if len(times) >= number:
            return max(times)
        time.sleep(1)
    raise AssertionError(f"{number} pods were not ready within ten minutes")


def ready_times(jobs: TrainJobs, since: float = 0) -> list[float]:
    """The times when Ray pods created after `since` became ready."""
    found = json.loads(jobs.kubectl("get", "pods", "--selector=ray.io/node-type", "--output=json"))["items"]
    new = [pod for pod in found if seconds(pod["metadata"]["creationTimestamp"]) >= int(since)]
    conditions = [each for pod in new for each in pod["status"].get("conditions", [])]
    return [seconds(each["lastTransitionTime"]) for each in conditions if is_ready(each)]


def is_ready(condition: dict[str, Any]) -> bool:
    return condition["type"] == "Ready" and condition["status"] == "True"


def driver_start(jobs: TrainJobs) -> float:
    """The time when Ray accepted the last attempt of the RayJob `job`."""
    return seconds(jobs.ray_job()["status"]["rayJobInfo"]["startTime"])


def seconds(timestamp: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


def step_times(jobs: TrainJobs) -> list[float]:
    lines = jobs.store.read(f"{jobs.run()}/metrics.jsonl").splitlines()
    return [record["time"] for record in map(json.loads, lines) if record["kind"] == "step"]


def resumed(times: list[float]) -> float:
    """The time of the step after the longest pause."""
    return max(pairwise(times), key=lambda pair: pair[1] - pair[0])[1]


def trainer_image(jobs: TrainJobs) -> str:
    """The operator's default trainer image."""
    key = "--output=jsonpath={.data.settings\\.yaml}"
    settings = jobs.cluster.kubectl("get", "configmap", "trainjob-operator", "--namespace", "trainjob-system", key)
    return yaml.safe_load(settings)["image"]


def pull(jobs: TrainJobs, image: str) -> tuple[float, float]:
    """Seconds that a node took to pull a new image, and the image's bytes, as reported by the node."""
    jobs.kubectl("run", "pull", f"--image={image}", "--restart=Never", "--command", "--", "python3", "--version")
    jobs.kubectl("wait", "pod/pull", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=600s")
    events = jobs.kubectl("get", "events", "--field-selector=reason=Pulled", "--output=jsonpath={.items[0].message}")
    found = re.search(r" in (?:(\d+)m)?([\d.]+)(m?s) .*Image size: (\d+) bytes", events)
    assert found is not None, f"the node had the image: {events}"
    minutes, number, unit, size = found.groups()
    return 60 * int(minutes or 0) + float(number) / (1000 if unit == "ms" else 1), float(size)


def size_on_disk(image: str) -> float:
    told = sh("docker" if docker() else "buildah", "images", "--format", "{{.Size}}", image)
    found = re.match(r"([\d.]+) ?([MG])B", told)
    assert found is not None, f"{image}: what size is {told}?"
    return float(found[1]) * {"M": 1e6, "G": 1e9}[found[2]]


MOST = {
    "TrainJob / RayJob": 1.0,
    "worker killed: training again after the pod": 20,
    **{f"{name} is not there: apply → the status says so": 10 for name in ("image", "gpus", "secret")},
    "operator image: MB, on disk": 250,
    "operator image: code changed → in the registry": 5,
    "operator image: pulled by a node": 5,
    "trainer image: code changed → in the registry": 5,
    "trainer image: pulled by a node": 5,
}
"""Upper limits, in seconds except for MB."""
PEERS = {"TrainJob / RayJob": ("TrainJob: apply → first step", "RayJob: apply → first step")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=["start", "worker", "head", "waiting", "images"])
    arguments = parser.parse_args()
    cluster = Cluster(Path(os.environ.get("KUBECONFIG") or KindCluster().kubeconfig))
    with object_store(cluster) as store, tempfile.TemporaryDirectory() as folder:
        store.upload(write_texts(Path(folder)), f"{BUCKET}/texts")
        bench = ClusterBench(cluster, store)
        with namespace(cluster, store) as jobs:  # so that every node has the image
            bench.ours(jobs)
        bench.figures.clear()
        parts: dict[str, Callable[[int], None]] = {
            "start": bench.start,
            "worker": bench.worker_killed,
            "head": bench.head_killed,
            "waiting": bench.waiting,
            "images": bench.images,
        }
        for turn in range(arguments.rounds):
            for part in arguments.parts:
                parts[part](turn)
    print(table(bench.figures, {name: (False, limit) for name, limit in MOST.items()}, PEERS))


if __name__ == "__main__":
    main()
