"""Seconds to the first optimizer step through Ray with and without the private part of Ray that a quicker start needs.

The job is that of `startup.py`, with two workers and without Ray Data, on a cluster that is up. Both take turns.
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
    "without Ray's reservation": """
import trainjob.training.launch.ray_cluster as ray_cluster
ray_cluster._is_own = lambda: True
""",
    "with it": "",
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
            job = small_job(Path(temporary), "dataLoader", 2, 600)
            for _ in range(rounds + 1):  # the first warms the disk
                for name, change in PARTS.items():
                    figures[name].append(run(job, change, address))
        finally:
            head.terminate()
            head.wait()
    print_table(figures)


if __name__ == "__main__":
    main()
