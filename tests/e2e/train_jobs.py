"""TrainJobs on a cluster that runs pods."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from cluster.client import Cluster
from cluster.jobs import Jobs, document, eventually
from code_servers import write_wheel
from e2e.evidence import FOLDER, write_evidence
from e2e.object_store import BUCKET, ENDPOINT, ObjectStore
from pages import trainjob_of
from servers.programs import program

PROJECTS = 1201
"""Rows of README's TrainJob."""
LONG = 600
"""Seconds that anything may take on a busy machine; most of what goes wrong fails sooner."""

Status = dict[str, Any]


class TrainJobs(Jobs):
    """The TrainJobs of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, store: ObjectStore) -> None:
        super().__init__(cluster, namespace)
        self.store = store

    def submit(self, name: str = "job", **spec: Any) -> None:
        """A TrainJob on the tests' texts; `spec` has fields besides."""
        self.create(name, **(self.texts() | spec))

    def storage(self) -> dict[str, str]:
        return {"uri": f"s3://{BUCKET}/{self.namespace}", "endpoint": ENDPOINT, "secretName": "s3"}

    def claim(self, name: str) -> None:
        """Creates a PersistentVolumeClaim."""
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "storageClassName": "standard",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        )

    def texts(self, epochs: int = 2, workers: int = 2, loader: str = "dataLoader") -> dict[str, Any]:
        """The spec of a small text classifier."""
        return {
            "model": {
                "textClassifier": {"encoder": {"layers": 2, "hiddenSize": 32, "heads": 2, "vocabularySize": 400}}
            },
            "dataset": {
                "train": {"uri": f"s3://{BUCKET}/texts/train.csv"},
                "test": {"uri": f"s3://{BUCKET}/texts/test.csv"},
                "text": ["title", "body"],
                "label": "label",
                "loader": loader,
            },
            "training": {
                "epochs": epochs,
                "batchSize": 16,
                "precision": "float32",
                "optimizer": {"adamW": {"learningRate": 2.0e-3}},
            },
            "checkpoints": {"everySteps": 10},
            "workers": {"count": workers},
            "storage": self.storage(),
        }

    def readme(self) -> str:
        """README's TrainJob with nothing but the URI of its data changed: its run goes to the default storage."""
        return trainjob_of("README.md", f"s3://{BUCKET}/projects/projects.csv")

    def submit_function(self, code: str, config: dict[str, Any] | None = None, **spec: Any) -> None:
        """A TrainJob of `train_loop` in a module with this code; `spec` has fields besides."""
        manifest = self.function(config or {}, pods=self.module("own", code), **spec)
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def function(self, config: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """A TrainJob of `train_loop` in a module `own`; `spec` has fields besides."""
        return document("job") | {
            "spec": {
                "model": {"function": {"name": "own:train_loop", "config": config}},
                "workers": {"count": 2},
                "storage": self.storage(),
            }
            | spec
        }

    def module(self, name: str, code: str) -> dict[str, Any]:
        """A job's `pods` where Python finds a module `name` with this code, which a ConfigMap holds."""
        metadata = {"name": name, "namespace": self.namespace}
        data = {f"{name}.py": dedent(code)}
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return {
            "env": [{"name": "PYTHONPATH", "value": "/code"}],
            "volumes": [{"name": "code", "configMap": {"name": name}}],
            "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        }

    def wheel(self, folder: Path, name: str, source: str) -> dict[str, Any]:
        """A job's `pods` where uv finds, instead of on an index, a package with this module, which a ConfigMap holds.
        Its wheel is written to `folder`."""
        write_wheel(folder, name, source)
        data = {file.name: b64encode(file.read_bytes()).decode() for file in folder.glob("*.whl")}
        metadata = {"name": name, "namespace": self.namespace}
        config = {"uv.toml": 'no-index = true\nfind-links = ["/wheels"]\n'}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data, "data": config}
        )
        return {
            "env": [{"name": "UV_CONFIG_FILE", "value": "/wheels/uv.toml"}],
            "volumes": [{"name": "wheels", "configMap": {"name": name}}],
            "volumeMounts": [{"name": "wheels", "mountPath": "/wheels"}],
        }

    def run(self, name: str = "job") -> str:
        """The folder of the job's run, from its bucket on."""
        found = self.get("trainjobs", name)
        assert found is not None
        storage = found["status"]["storage"]["uri"].removeprefix("s3://")
        return f"{storage}/{name}-{found['metadata']['uid'][:8]}"

    def until_gone(self, name: str = "job") -> None:
        """Waits until the job has no Ray pod any more."""
        eventually(lambda: not self.pods(name=name), LONG, lambda: f"still there: {self.pods(name=name)}")

    def until_phase(self, phase: str, name: str = "job") -> Status:
        """The TrainJob's status in that phase. Fails at once when the job has ended in another."""
        return self.until_true(lambda status: status.get("phase") == phase, phase, name)

    def until_true(self, reached: Callable[[Status], object], what: str, name: str = "job") -> Status:
        """The TrainJob's status once it has `reached` something. Fails at once when the job has ended before."""
        deadline, status = time.monotonic() + LONG, {}
        while time.monotonic() < deadline:
            try:
                status = self.status(name)
            except OSError:
                continue
            if reached(status):
                return status
            assert status.get("phase") not in ("Succeeded", "Failed"), f"ended before {what}: {status}"
            time.sleep(0.5)
        raise AssertionError(f"{what} was not reached in {LONG} s: {status}")

    def until_waiting(self, name: str, *reasons: str) -> list[Status]:
        """The statuses until the job waits for one of these reasons."""

        def found(status: Status) -> bool:
            return any(each["reason"] in reasons for each in status.get("waiting", []))

        return self.until_true(found, f"the wait for {' or '.join(reasons)}", name)["waiting"]

    def pods(self, kind: str = "", name: str = "job") -> list[str]:
        """Names of the job's Ray pods: of all, or of those that are `head` or `worker`."""
        ray_job = self.get("rayjobs", name)
        cluster = (ray_job or {}).get("status", {}).get("rayClusterName", "")
        selector = f"ray.io/cluster={cluster}" + (f",ray.io/node-type={kind}" if kind else "")
        found = self.cluster.find("pods", self.namespace, labels=selector)
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def trainjob(self, *arguments: str, code: int = 0) -> str:
        """The output of a command on the jobs, as a user gives it on this machine; its errors if it has to fail."""
        done = subprocess.run(**self.command(*arguments), capture_output=True, text=True, timeout=LONG)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stderr if code else done.stdout

    def ray_version(self, name: str = "job") -> str:
        """The version that Ray's dashboard tells a browser, which has no token of Ray's."""
        command = self.command("dashboard", name, "--no-browser")
        with subprocess.Popen(**command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                link = process.stdout.readline().split()[-1]
                browser = build_opener(HTTPCookieProcessor())
                browser.open(link, timeout=30).close()
                with browser.open(urljoin(link, "/api/version"), timeout=30) as answer:
                    return json.load(answer)["ray_version"]
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=30)

    def command(self, *arguments: str) -> dict[str, Any]:
        """Arguments for `subprocess` to run a command on the jobs, as a user gives it on this machine."""
        return {
            "args": [sys.executable, "-m", "trainjob", *arguments, "--namespace", self.namespace],
            "env": os.environ | self.store.credentials | {"KUBECONFIG": str(self.cluster.kubeconfig)},
        }

    @contextmanager
    def phases(self, name: str = "job") -> Generator[list[str]]:
        """The phases that the job goes through in the block, as they come."""
        own = ["--kubeconfig", self.cluster.kubeconfig, "--namespace", self.namespace]
        what = ["get", "trainjob", name, "--watch", "--output=jsonpath={.status.phase}{'\\n'}"]
        phases: list[str] = []
        with subprocess.Popen([program("kubectl"), *own, *what], stdout=subprocess.PIPE, text=True) as watch:

            def read() -> None:
                for line in watch.stdout or ():
                    if line.strip() not in ("", *phases[-1:]):
                        phases.append(line.strip())

            reader = threading.Thread(target=read)
            reader.start()
            try:
                yield phases
            finally:
                watch.kill()
                reader.join()

    def kill(self, pod: str) -> None:
        """Ends a pod as a lost machine does."""
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")


@contextmanager
def namespace(cluster: Cluster, store: ObjectStore, session: pytest.Session, test: str) -> Generator[TrainJobs]:
    """The TrainJobs of a new namespace, where no pod may do more than Pod Security's level `restricted` lets it.

    At the end it is deleted; if a test has failed meanwhile, evidence is written to a folder that is named `test`.
    """
    name = f"e2e-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    failures = session.testsfailed
    try:
        cluster.apply(manifest, store.secret(name))
        yield TrainJobs(cluster, name, store)
    except BaseException:
        failures = -1
        raise
    finally:
        if session.testsfailed > failures:
            write_evidence(cluster, name, FOLDER / test)
        cluster.kubectl("delete", "namespace", name, "--wait=false")


def until_step(jobs: TrainJobs, step: int, name: str = "job") -> int:
    """Waits until training has come there, and returns where it is."""
    status = jobs.until_true(lambda status: status.get("training", {}).get("step", 0) >= step, f"step {step}", name)
    return status["training"]["step"]


def resumed_from(status: Status) -> int:
    """The step of the checkpoint that training has gone on from; 0 if it has not."""
    origin = status.get("training", {}).get("message", "")
    return int(origin.rpartition("-")[2]) if "continues from" in origin else 0
