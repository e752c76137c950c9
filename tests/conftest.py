"""What several folders of tests share."""

import secrets
from collections.abc import Generator

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from cluster.client import Cluster

pytest.register_assert_rewrite("folder_contract")


class Together(LoadScopeScheduling):
    """Has one test process run what shares a cluster, or a run of its module."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        return folder if folder in ("control_plane", "chart") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Together(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture
def namespace(cluster: Cluster) -> Generator[str]:
    """The name of a new namespace, which goes after the test with all that is in it."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", name, "--timeout=30s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
