"""Seconds to the first optimizer step through Ray with and without each private part of Ray that trainjob uses.

The job is that of `startup.py`, with two workers. The cleaner is taken out of a run that starts its own cluster; the
reservation, which only runs without Ray Data do without, out of one on a cluster that is up. All take turns.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from startup import first_step, print_table, small_job

PORT = 6399
PARTS = {
    "rayData, own cluster": "",
    "rayData, own cluster, with Ray's cleaner": """
from trainjob.training.launch.ray_cluster import set_environment
set_environment()
import ray.train.torch
import ray.train.v2._internal.callbacks.placement_group_callback as callbacks
callbacks.PlacementGroupCleanerCallback = type(None)
""",
    "dataLoader, cluster that is up": """
import trainjob.training.launch.ray_cluster as ray_cluster
ray_cluster._is_own = lambda: True
""",
    "dataLoader, cluster that is up, with Ray's reservation": """
import trainjob.training.launch.ray_cluster as ray_cluster
ray_cluster._is_own = lambda: True
trainer_class = ray_cluster.trainer_class
ray_cluster.trainer_class = lambda own_cluster, uses_ray_data: trainer_class(own_cluster, uses_ray_data=True)
""",
}


def run(file: Path, change: str, environment: Mapping[str, str]) -> float:
    """Seconds to the end of the first step."""
    program = f"{change}\nfrom trainjob.cli.app import main\nmain()"
    since = time.time()
    subprocess.run(
        [sys.executable, "-c", program, "run", str(file), "--fresh"],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return first_step(file) - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    figures: dict[str, list[float]] = {name: [] for name in PARTS}
    address = {"RAY_ADDRESS": f"127.0.0.1:{PORT}", "RAY_AUTH_MODE": "token"}
    start = ["start", "--head", "--block", f"--port={PORT}", "--num-cpus=4", "--include-dashboard=false"]
    with tempfile.TemporaryDirectory() as temporary:
        head = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *start],
            env=os.environ | {"RAY_AUTH_MODE": "token"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            jobs = {loader: small_job(Path(temporary), loader, 2, 600) for loader in ("rayData", "dataLoader")}
            for _ in range(rounds + 1):  # the first warms the disk
                for name, change in PARTS.items():
                    loader, _, cluster = name.partition(", ")
                    environment = address if cluster.startswith("cluster that is up") else {}
                    figures[name].append(run(jobs[loader], change, environment))
        finally:
            head.terminate()
            head.wait()
    print_table(figures)


if __name__ == "__main__":
    main()
