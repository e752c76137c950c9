"""Kubeconfigs and names that lead nowhere, without a cluster."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from trainjob.cluster import ClusterError, NoCluster, NoSuchJob
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.kubeconfig import connect


def kubeconfig(folder: Path, **user: Any) -> str:
    """A file that names an API server which nobody runs."""
    path = folder / "config"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "me", "user": user}],
                "contexts": [{"name": "away", "context": {"cluster": "away", "user": "me"}}],
                "current-context": "away",
            }
        )
    )
    return str(path)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (["no-such-plugin"], "No such file or directory: 'no-such-plugin'"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "process returned 3"),
        ([sys.executable, "-c", "print('{}')"], "exec: malformed response"),
    ],
)
def test_a_credential_plugin_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: list[str], problem: str
):
    command, *arguments = plugin
    version = "client.authentication.k8s.io/v1"
    provider = {"apiVersion": version, "command": command, "args": arguments, "interactiveMode": "Never"}
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, exec=provider))
    with pytest.raises(NoCluster, match=problem):
        connect()


def test_of_several_kubeconfigs_the_first_current_context_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files: list[str] = []
    for number, current in enumerate(("", "one", "two")):
        (folder := tmp_path / str(number)).mkdir()
        files.append(kubeconfig(folder, token="secret"))
        content = json.loads(Path(files[-1]).read_text())
        content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{number}"
        content["clusters"][0]["name"] = content["contexts"][0]["context"]["cluster"] = f"cluster-{number}"
        content["contexts"][0]["name"] = ("none", "one", "two")[number]
        Path(files[-1]).write_text(json.dumps(content | {"current-context": current}))
    monkeypatch.setenv("KUBECONFIG", ":".join([*files, str(tmp_path / "missing")]))
    assert connect().url == "https://127.0.0.1:1"
    assert connect("two").url == "https://127.0.0.1:2"
    monkeypatch.setenv("KUBECONFIG", files[0])
    with pytest.raises(NoCluster, match="no current context, so choose one with --context: it has none"):
        connect()
    assert connect("none").url == "https://127.0.0.1:0"


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, "[]", "what answers there is not Kubernetes"),
        (200, "{}", "what answers there is not Kubernetes"),
        (200, "<html>Log in</html>", "what answers there is not Kubernetes"),
        (
            403,
            "<html>Go away</html>",
            "http://127.0.0.1:[0-9]+ answers 403, and not as Kubernetes does: <html>Go away</html>",
        ),
        (407, "", "http://127.0.0.1:[0-9]+ answers 407, and not as Kubernetes does: HTTP status 407"),
    ],
)
def test_a_server_that_is_not_an_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, body: str, problem: str
):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 the base class's name
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        file = Path(kubeconfig(tmp_path, token="secret"))
        file.write_text(file.read_text().replace("https://127.0.0.1:1", f"http://127.0.0.1:{server.server_port}"))
        monkeypatch.setenv("KUBECONFIG", str(file))
        Thread(target=server.serve_forever, daemon=True).start()
        client = ClusterClient(connect())
        for ask in (lambda: client.jobs("team"), lambda: client.job("tags")):
            with pytest.raises(ClusterError, match=problem):
                ask()
        server.shutdown()


@pytest.mark.parametrize("name", ["", ".", "..", "tags/status", "tags?watch=1", "a%b", "A B", "tags\n"])
def test_a_name_that_no_object_can_have_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, token="secret"))
    with pytest.raises(NoSuchJob, match="cannot be the name of a TrainJob"):
        ClusterClient(connect()).job(name)
    if name:
        with pytest.raises(ClusterError, match="cannot be the name of a namespace"):
            connect(namespace=name)


def test_a_client_starts_without_the_classes_of_the_spec():
    script = "import sys, trainjob.cluster.client; print('trainjob.api.trainjob' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True, timeout=120) == "False\n"
