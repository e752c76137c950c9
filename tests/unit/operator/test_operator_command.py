"""The `trainjob-operator` command, where it cannot start."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def busy() -> Generator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


def run(folder: Path, port: int, kubeconfig: str) -> subprocess.CompletedProcess[str]:
    settings, config = folder / "settings.yaml", folder / "kubeconfig"
    settings.write_text("image: registry.example/trainjob:1")
    config.write_text(kubeconfig)
    command = [str(Path(sys.executable).parent / "trainjob-operator"), "run", "--settings", str(settings)]
    environment = os.environ | {"KUBECONFIG": str(config)}
    return subprocess.run([*command, f"--port={port}"], env=environment, capture_output=True, text=True, timeout=60)


def test_a_port_in_use_is_one_line(busy: int, tmp_path: Path):
    named = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", **named}
    done = run(tmp_path, busy, json.dumps(config))
    [line] = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith(f"--port {busy}: ")
    assert "address already in use" in line


@pytest.mark.parametrize("kubeconfig", ["", "clusters: []", "["])
def test_without_a_cluster_it_says_so(tmp_path: Path, kubeconfig: str):
    done = run(tmp_path, 0, kubeconfig)
    assert done.returncode == 2, done.stderr
    assert "neither a pod's service account nor a kubeconfig" in done.stderr
    assert "Traceback" not in done.stderr
