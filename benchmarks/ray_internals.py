"""Measures the time to the first step through Ray with and without the use of Ray's private parts for a faster start.

The job is that of `startup.py`, with two workers and without Ray Data. Each run uses a newly started Ray cluster, which
it treats like one created by the operator. The two variants alternate.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from startup import first_step, print_table, small_job

PORT = 6399
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
CLUSTER = os.environ | {"RAY_ADDRESS": f"127.0.0.1:{PORT}", "RAY_AUTH_MODE": "token"}
AS_THE_OPERATORS = """
import trainjob.launch.ray_cluster as ray_cluster
ray_cluster.is_own_cluster = lambda: True
"""
RAYS_POLICY = """
from trainjob.launch.fast import ray_internals

def policy():
    from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy
    return FixedScalingPolicy

ray_internals._fixed_policy = policy
"""
PARTS = {"without Ray's reservation": AS_THE_OPERATORS, "with it": AS_THE_OPERATORS + RAYS_POLICY}


@contextmanager
def cluster() -> Generator[None]:
    """A running Ray cluster."""
    start = ["start", "--head", "--block", f"--port={PORT}", "--num-cpus=4", "--include-dashboard=false"]
    with subprocess.Popen([*RAY, *start], env=CLUSTER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as head:
        assert head.stdout is not None
        while b"Ray runtime started" not in (line := head.stdout.readline()):
            assert line, "Ray did not start"
        try:
            yield
        finally:
            head.terminate()


def run(file: Path, change: str) -> float:
    """Seconds to the end of the first step."""
    program = f"{change}\nfrom trainjob.cli.app import main\nmain()"
    since = time.time()
    command = [sys.executable, "-c", program, "run", str(file), "--fresh"]
    subprocess.run(command, env=CLUSTER, stdout=subprocess.DEVNULL, check=True)
    return first_step(file) - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    figures: dict[str, list[float]] = {name: [] for name in PARTS}
    with tempfile.TemporaryDirectory() as temporary:
        job = small_job(Path(temporary), "dataLoader", 2, 600)
        for _ in range(rounds + 1):  # the first warms the disk
            for name, change in PARTS.items():
                with cluster():
                    figures[name].append(run(job, change))
    print_table(figures)


if __name__ == "__main__":
    main()
