"""A stranger who reaches a Ray cluster that asks for a token does not get in; tests/e2e/test_text_job.py tries the
dashboard of a job's."""

import os
import subprocess
import sys

import pytest

from cluster.jobs import eventually

SECONDS = 300
"""Ray's server for clients forks a process for each while gRPC's threads work: many of them end at once."""

JOIN = "import os, ray; ray.init(os.environ['RAY_ADDRESS'], logging_level='ERROR'); print(len(ray.nodes()), 'node')"
CONNECT = """
import os, ray, ray.util
ray.util.connect(os.environ["RAY_ADDRESS"], connection_retries=1)
print(len(ray.nodes()), "node")
"""


def join(program: str = JOIN, **environment: str) -> subprocess.CompletedProcess[str]:
    """Joins the cluster from another process."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    own |= {"RAY_ADDRESS": os.environ["RAY_ADDRESS"], **environment}
    return subprocess.run([sys.executable, "-c", program], env=own, text=True, capture_output=True, timeout=300)


STRANGERS = ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "x" * 44})


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["as a node's process", "as a client"])
def test_only_who_has_the_token_gets_in(how: str, warm_ray: int):
    program, address = JOIN, os.environ["RAY_ADDRESS"]
    if how == "as a client":
        program, address = CONNECT, f"127.0.0.1:{warm_ray}"
    attempts: list[subprocess.CompletedProcess[str]] = []

    def joined() -> bool:
        attempts.append(join(program, RAY_AUTH_MODE="token", RAY_ADDRESS=address))
        return attempts[-1].stdout == "1 node\n"

    eventually(joined, SECONDS, lambda: attempts[-1].stderr)
    for stranger in STRANGERS:
        refused = join(program, **stranger, RAY_ADDRESS=address)
        assert refused.returncode != 0
        assert "node" not in refused.stdout
