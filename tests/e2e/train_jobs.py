"""TrainJobs on a cluster that runs pods, the data that they read, and what they leave behind."""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from pyarrow import fs

from cluster.client import Cluster, KubectlError
from cluster.component import free_ports
from cluster.jobs import Jobs, eventually
from servers.programs import program

BUCKET = "e2e"
ENDPOINT = "http://minio.minio:9000"

LONG = 600
"""Seconds that anything may take: what is wrong mostly shows sooner."""

Status = dict[str, Any]


class ObjectStore:
    """A MinIO of the cluster, as this machine reaches it."""

    def __init__(self, endpoint: str, credentials: dict[str, str]) -> None:
        self.endpoint, self.credentials = endpoint, credentials
        key, secret = credentials["AWS_ACCESS_KEY_ID"], credentials["AWS_SECRET_ACCESS_KEY"]
        self.files = fs.S3FileSystem(
            access_key=key, secret_key=secret, endpoint_override=endpoint, allow_bucket_creation=True
        )

    def upload(self, folder: Path, target: str) -> None:
        self.files.create_dir(target)
        fs.copy_files(str(folder), target, destination_filesystem=self.files)

    def secret(self, namespace: str) -> dict[str, Any]:
        """The Secret that a TrainJob's `storage.secretName` names."""
        metadata = {"name": "s3", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": self.credentials}

    def read(self, path: str) -> bytes:
        with self.files.open_input_stream(path) as stream:
            return stream.read()

    def write(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(path) as stream:
            stream.write(data)

    def trainjob(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the `trainjob` command with the store's credentials."""
        environment = os.environ | self.credentials | {"AWS_ENDPOINT_URL": self.endpoint}
        command = [sys.executable, "-m", "trainjob", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG)


@contextmanager
def object_store(cluster: Cluster, namespace: str = "minio") -> Generator[ObjectStore]:
    """The MinIO of a namespace."""
    (port,) = free_ports(1)
    command = [program("kubectl"), "--kubeconfig", cluster.kubeconfig, "--namespace", namespace, "port-forward"]
    quiet = subprocess.DEVNULL
    forward = subprocess.Popen([*command, "service/minio", f"{port}:9000"], stdout=quiet, stderr=quiet)
    try:
        found = json.loads(cluster.kubectl("get", "secret", "minio", "--namespace", namespace, "--output=json"))["data"]
        credentials = {key: base64.b64decode(value).decode() for key, value in found.items()}
        store = ObjectStore(f"http://127.0.0.1:{port}", credentials)
        eventually(lambda: store.files.get_file_info("/") or True, LONG)
        yield store
    finally:
        forward.terminate()
        forward.wait()


@dataclass(frozen=True)
class Trouble:
    """What keeps a job's pods from starting."""

    spec: Status
    """Fields of a TrainJob that has it."""
    reasons: tuple[str, ...]
    """Which of them the status tells depends on when one looks."""
    words: str
    """Of the message."""


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

    def troubles(self) -> dict[str, Trouble]:
        image, gpus = {"image": "localhost:5000/there-is-none:1"}, {"count": 8, "perPod": 8, "gpus": 1}
        secret = {**self.storage(), "secretName": "there-is-none"}
        return {
            "image": Trouble({"pods": image}, ("ErrImagePull", "ImagePullBackOff"), "there-is-none"),
            "gpus": Trouble({"workers": gpus}, ("Unschedulable",), "Insufficient nvidia.com/gpu"),
            "secret": Trouble({"storage": secret}, ("CreateContainerConfigError",), 'secret "there-is-none" not found'),
        }

    def claim(self, name: str) -> dict[str, Any]:
        """A PersistentVolumeClaim."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "storageClassName": "standard",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }

    def texts(self, epochs: int = 2, workers: int = 2, loader: str = "dataLoader") -> dict[str, Any]:
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

    def submit_function(
        self, code: str, name: str = "job", file: str = "own.py", config: dict[str, Any] | None = None, **spec: Any
    ) -> None:
        """A TrainJob of `train_loop` in own.py; a ConfigMap holds that file, or another one."""
        metadata = {"name": name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {file: dedent(code)}}
        )
        pods = {
            "env": [{"name": "PYTHONPATH", "value": "/code"}],
            "volumes": [{"name": "code", "configMap": {"name": name}}],
            "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        }
        function = {"name": "own:train_loop", "config": config or {"epochs": 20}}
        self.kubectl(
            "apply",
            "-f",
            "-",
            stdin=json.dumps(
                {
                    "apiVersion": "trainjob.dev/v1alpha1",
                    "kind": "TrainJob",
                    "metadata": {"name": name},
                    "spec": {
                        "model": {"function": function},
                        "workers": {"count": 2},
                        "storage": self.storage(),
                        "pods": pods,
                    }
                    | spec,
                }
            ),
        )

    def run(self, name: str = "job") -> str:
        """The folder of the job's run in its storage."""
        found = self.get("trainjobs", name)
        assert found is not None
        return f"{name}-{found['metadata']['uid'][:8]}"

    def until_gone(self, name: str = "job") -> None:
        """Waits until the job has no Ray pod any more."""
        eventually(lambda: not self.pods(name=name), LONG, because=lambda: f"still there: {self.pods(name=name)}")

    def until_phase(self, phase: str, name: str = "job") -> Status:
        """The TrainJob's status in that phase. Fails at once when the job has ended in another."""
        return self.until_true(lambda status: status.get("phase") == phase, phase, name)

    def until_true(self, reached: Callable[[Status], object], what: str, name: str = "job") -> Status:
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline:
            try:
                status = self.status(name)
            except OSError:
                status = {}
            if reached(status):
                return status
            assert status.get("phase") not in ("Succeeded", "Failed"), f"ended before {what}: {status}"
            time.sleep(0.1)
        raise AssertionError(f"{what} was not reached: {self.status(name)}")

    def until_waiting(self, name: str, *reasons: str) -> list[Status]:
        """What the job waits for, once it is for one of these reasons."""

        def told() -> list[Status] | None:
            waiting = self.status(name).get("waiting", [])
            return waiting if any(each["reason"] in reasons for each in waiting) else None

        return eventually(told, LONG, because=lambda: f"waits for {self.status(name)}")

    def pods(self, kind: str = "", name: str = "job") -> list[str]:
        """Names of the job's Ray pods: of all, or of those that are `head` or `worker`."""
        ray_job = self.get("rayjobs", name)
        cluster = (ray_job or {}).get("status", {}).get("rayClusterName", "")
        selector = f"ray.io/cluster={cluster}" + (f",ray.io/node-type={kind}" if kind else "")
        found = self.cluster.find("pods", self.namespace, selector)
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]

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
                watch.terminate()
                reader.join()

    def kill(self, pod: str) -> None:
        """Ends a pod as a lost machine does."""
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")


def until_step(jobs: TrainJobs, step: int, name: str = "job") -> int:
    """Waits until training has come there, and returns where it is."""
    status = jobs.until_true(lambda status: status.get("training", {}).get("step", 0) >= step, f"step {step}", name)
    return status["training"]["step"]


def resumed_from(status: Status) -> int:
    """The step of the checkpoint that training has gone on from; 0 if it has not."""
    origin = status.get("training", {}).get("message", "")
    return int(origin.rpartition("-")[2]) if "continues from" in origin else 0


def write_evidence(cluster: Cluster, namespace: str, folder: Path) -> None:
    """Objects, events and logs of a namespace, and the logs of those that look after it."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = "trainjobs,rayjobs,rayclusters,jobs,pods,events"
    (folder / "objects.yaml").write_text(cluster.kubectl("get", kinds, "--namespace", namespace, "--output=yaml"))
    for where in (namespace, "trainjob-system", "kuberay-system"):
        for pod in cluster.find("pods", where):
            name = pod["metadata"]["name"]
            try:
                log = cluster.kubectl("logs", name, "--namespace", where, "--all-containers", "--tail=2000")
            except KubectlError as error:
                log = str(error)
            (folder / f"{name}.log").write_text(log)
