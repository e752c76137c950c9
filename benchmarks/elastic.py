"""Measures elastic training: seconds from the loss of a node until training continues without it, from its return until
it takes part again, and the rows trained twice.

The text example runs on a Ray cluster of a head and three nodes, each with one worker slot, all on this machine. The
run treats it like a cluster created by the operator. With `minimum: 2`, one node is killed during training, and comes
back once two workers train.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import yaml

if TYPE_CHECKING:
    from trainjob.api.training_status import TrainingStatus

EXAMPLES = Path(__file__).parent.parent / "examples"
EVERY_STEPS = 50
BATCH = 48
AS_IN_PODS = {
    "RAY_raylet_liveness_self_check_interval_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S": "5",
    "RAY_AUTH_MODE": "disabled",
}


def elastic_job(folder: Path) -> Path:
    """The text example, with more epochs than the benchmark waits for."""
    document = yaml.safe_load((EXAMPLES / "docstrings.yaml").read_text())
    spec = document["spec"]
    spec["dataset"] |= {"train": {"uri": str(EXAMPLES / spec["dataset"]["train"]["uri"])}, "loader": "dataLoader"}
    del spec["dataset"]["test"]
    spec["training"] |= {"epochs": 1000, "batchSize": BATCH}
    spec["checkpoints"] = {"everySteps": EVERY_STEPS}
    spec |= {"workers": {"count": 3, "minimum": 2}, "storage": {"uri": "runs"}, "baselines": {}}
    file = folder / "elastic.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@dataclass
class Watched:
    """The progress of training."""

    workers: int | None = None
    step: int = 0
    begun: dict[int, tuple[float, int]] = field(default_factory=dict)
    """For each number of workers: when training last started with it, and after which step."""

    def update(self, status: "TrainingStatus") -> None:
        if status.stage != "Training":
            self.workers = None
        elif status.workers is not None and status.workers != self.workers:
            self.workers = status.workers
            self.begun[status.workers] = time.monotonic(), status.step
        self.step = status.step

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {self}")
            time.sleep(0.01)


def measure(folder: Path) -> dict[str, float]:
    import ray
    from ray.cluster_utils import Cluster

    from trainjob.api.load import load_trainjob
    from trainjob.driver.run import run
    from trainjob.launch import ray_cluster

    def add_node() -> Any:
        place = {"trainjob_worker": 1}
        return cluster.add_node(num_cpus=2, resources=place, object_store_memory=100 * 2**20)

    def story() -> dict[str, float]:
        watched.until(lambda: watched.workers == 3 and watched.step >= 3.5 * EVERY_STEPS)
        killed, step = time.monotonic(), watched.step
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        watched.until(lambda: watched.workers == 2)
        again, resumed = watched.begun[2]
        watched.until(lambda: watched.step > resumed + EVERY_STEPS)
        back = time.monotonic()
        nodes.append(add_node())
        watched.until(lambda: watched.workers == 3)
        joined, _ = watched.begun[3]
        return {"lost_s": again - killed, "repeated_rows": (step - resumed) * BATCH, "joined_s": joined - back}

    def train() -> None:
        with contextlib.suppress(Exception):  # there is no Ray any more
            run(load_trainjob(elastic_job(folder)), source=folder, started=time.time(), on_status=watched.update)

    watched = Watched()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    own = mock.patch.object(ray_cluster, "_made_by_operator", return_value=True)
    with own, mock.patch.dict(os.environ, RAY_ADDRESS=cluster.address):
        try:
            nodes = [add_node() for _ in range(3)]
            threading.Thread(target=train, daemon=True).start()
            return story()
        finally:
            ray.shutdown()
            cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    os.environ.update(AS_IN_PODS)
    results: list[dict[str, float]] = []
    for number in range(1, rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            results.append(measure(Path(folder)))
        print(number, {name: round(value, 1) for name, value in results[-1].items()}, flush=True)
    for name in results[0]:
        print(f"{name}: median {statistics.median(result[name] for result in results):.1f}")
    print(f"one checkpoint interval: {EVERY_STEPS * BATCH} rows")


if __name__ == "__main__":
    main()
