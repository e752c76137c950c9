"""Measures `trainjob list` of 1,000 TrainJobs beside `kubectl get tj`: seconds, and CPU seconds of the command.

It runs both alternately on its own control plane: `PYTHONPATH=hack:tests python benchmarks/list_jobs.py`.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from kubernetes.aio.client import ApiClient
from operator_bench import Aims, Figures, on_a_control_plane, table
from operator_cluster import TRAIN_JOBS, Client, at_once
from operator_jobs import train_jobs

from cluster.control_plane import ControlPlane
from servers.programs import program

AIMS: Aims = {"trainjob list: seconds": (False, 2.0), "trainjob list: CPU seconds": (False, 1.0)}
STATUS: dict[str, Any] = {
    "phase": "Running",
    "reason": "Training",
    "message": "epoch 2 of 3",
    "attempt": 1,
    "startTime": datetime.now(UTC).isoformat(),
    "workers": {"desired": 2, "ready": 2},
    "storage": {"uri": "s3://runs"},
    "conditions": [
        {
            "type": name,
            "status": str(name in ("Accepted", "Reconciling")),
            "reason": "Training",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
        for name in ("Accepted", "Complete", "Failed", "Suspended", "Reconciling", "Stalled", "Ready")
    ],
    "training": {
        "stage": "Training",
        "epoch": 2,
        "epochs": 3,
        "step": 1200,
        "steps": 4000,
        "percent": 31.4,
        "eta": 754.0,
        "samplesPerSecond": 210.5,
        "loss": 0.75,
        "learningRate": 0.001,
        "metrics": {f"validation_{name}": 0.75 for name in ("loss", "accuracy", "f1", "precision", "recall")},
        "bestCheckpoint": {"uri": "s3://runs/job/checkpoints/1", "step": 600, "metric": "validation_f1", "value": 0.75},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    async def measure(control_plane: ControlPlane, client: ApiClient) -> Figures:
        jobs = Client(client, "default")

        async def create(job: dict[str, Any]) -> None:
            await jobs.create(TRAIN_JOBS, job)
            await jobs.report(TRAIN_JOBS, job["metadata"]["name"], STATUS)

        await at_once([lambda job=job: create(job) for job in train_jobs(arguments.jobs)])
        return listed(control_plane, arguments.jobs, arguments.rounds)

    print(table(on_a_control_plane(measure), AIMS))


def listed(control_plane: ControlPlane, jobs: int, rounds: int) -> Figures:
    """Seconds and CPU seconds of both commands, each of which must print a line for each job."""
    commands = {
        "trainjob list": [sys.executable, "-m", "trainjob", "list"],
        "kubectl get tj": [program("kubectl"), "get", "trainjobs.trainjob.dev"],
    }
    environment = os.environ | {"KUBECONFIG": str(control_plane.kubeconfig)}
    figures: Figures = {}
    for _ in range(rounds):
        for name, command in commands.items():
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.check_output(command, env=environment)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            assert out.count(b"\n") == jobs + 1, out[:500]
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            figures.setdefault(f"{name}: seconds", []).append(seconds)
            figures.setdefault(f"{name}: CPU seconds", []).append(cpu)
    return figures


if __name__ == "__main__":
    main()
