"""A stranger who reaches a Ray cluster that asks for a token does not get in; tests/e2e/test_stranger.py tries the
dashboard of a job's."""

import os
import subprocess
import sys

import pytest

JOIN = "import os, ray; ray.init(os.environ['RAY_ADDRESS'], logging_level='ERROR'); print(len(ray.nodes()), 'node')"


def join(**environment: str) -> subprocess.CompletedProcess[str]:
    """Joins the cluster from another process."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    own |= {"RAY_ADDRESS": os.environ["RAY_ADDRESS"], **environment}
    return subprocess.run([sys.executable, "-c", JOIN], env=own, text=True, capture_output=True, timeout=300)


@pytest.mark.usefixtures("warm_ray")
def test_only_who_has_the_token_gets_in():
    assert join(RAY_AUTH_MODE="token").stdout == "1 node\n"
    for stranger in ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "x" * 44}):
        refused = join(**stranger)
        assert refused.returncode != 0
        assert "node" not in refused.stdout
