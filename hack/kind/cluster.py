"""A kind cluster, which runs pods, and its image registry."""

import json
import shutil
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from cluster.client import Cluster
from cluster.component import Component
from kind.engine import EngineError, docker, engine, environment, sh
from kind.images import BUILD_SECONDS, node_image
from kind.unpacked import CONTAINERD, remove_workers, worker_folders
from servers.programs import CACHE, program

NAME = "trainjob"
FOLDER = CACHE.parent / "kind"
PORT = 5000
REGISTRY = f"localhost:{PORT}"
IMAGES = CACHE.parent / "registry"
"""The registry's files, with podman."""
ROOM = 30e9
"""Bytes of disk that images and a cluster take: built, in the registry, and unpacked for the workers."""


class KindCluster(Cluster):
    """A kind cluster with its files in `folder`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / "kubeconfig")
        self.folder = folder
        self.environment = environment(folder)

    def make_room(self) -> None:
        """With podman, removes the images of earlier clusters if there is no cluster and the disk is nearly full.

        A build that changes the trainer image needs room for both of them. What is removed is made again.
        """
        if docker() or self._exists() or shutil.disk_usage(self.folder).free > ROOM:
            return
        self.down()
        for images in (IMAGES, self.folder / "containerd"):
            shutil.rmtree(images, ignore_errors=True)
        sh("buildah", "rmi", "--prune", "--force")

    def serve_images(self) -> None:
        """Starts the image registry."""
        if not docker():
            self._serve_registry()
        elif not sh("docker", "ps", "--quiet", "--filter", "name=kind-registry"):
            sh("docker", "run", "--detach", "--name", "kind-registry",
               "--publish", f"127.0.0.1:{PORT}:5000", "registry:2")  # fmt: skip

    def node_image(self) -> str | None:
        """The node image of a new cluster; None if the cluster exists, or with Docker, where kind selects it."""
        return None if docker() or self._exists() else node_image(self.folder)

    def up(self, image: str, nodes: str | None) -> None:
        """Creates the cluster if it does not exist. With podman, its workers have `image` from the start."""
        if not self._exists():
            self._create(image, nodes)
        self._show_registry()
        self._make_volumes()

    def _exists(self) -> bool:
        return NAME in self._kind("get", "clusters").split()

    def _create(self, image: str, nodes: str | None) -> None:
        configuration = yaml.safe_load(Path(__file__).with_name("kind.yaml").read_text())
        options = list[str]()
        if nodes:
            options = ["--image", nodes]
            workers = [node for node in configuration["nodes"] if node["role"] == "worker"]
            folders = worker_folders(self.folder / "containerd", nodes, image, len(workers), self.environment)
            for worker, folder in zip(workers, folders, strict=True):
                worker["extraMounts"] = [{"hostPath": str(folder), "containerPath": CONTAINERD}]
            Path("/lib/modules").mkdir(exist_ok=True)  # kind mounts it, and Docker would make it
        file = self.folder / "kind.yaml"
        file.write_text(yaml.safe_dump(configuration))
        self._kind("create", "cluster", "--name", NAME, "--config", file, *options,
                   "--kubeconfig", self.kubeconfig, "--wait", "180s")  # fmt: skip

    def down(self) -> None:
        """Removes the cluster; the registry keeps its images for the next one."""
        self._kind("delete", "cluster", "--name", NAME, "--kubeconfig", self.kubeconfig)
        if docker():
            sh("docker", "rm", "--force", "kind-registry")
            return
        remove_workers(self.folder / "containerd")
        if (process := self.folder / "registry.pid").exists():
            with suppress(EngineError):  # it has ended by itself
                sh("pkill", "--pidfile", process, "docker-registry")
            process.unlink()

    def nodes(self) -> list[str]:
        """Names of the nodes and of their containers."""
        return self._kind("get", "nodes", "--name", NAME).split()

    def on_node(self, node: str, *command: str, seconds: float = 60) -> str:
        """The output of a command on a node."""
        return sh(engine(), "exec", node, *command, env=self.environment, seconds=seconds)

    def pull(self, image: str) -> None:
        """Makes all workers pull an image in parallel, so that pods with it start immediately."""
        command = ("ctr", "--namespace=k8s.io", "images", "pull", "--hosts-dir=/etc/containerd/certs.d", image)
        workers = [node for node in self.nodes() if not node.endswith("control-plane")]
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: self.on_node(node, *command, seconds=BUILD_SECONDS), workers))

    @contextmanager
    def without(self, node: str) -> Generator[None]:
        """Freezes the node within the block, as if its machine were lost."""
        sh(engine(), "pause", node, env=self.environment)
        try:
            yield
        finally:
            sh(engine(), "unpause", node, env=self.environment)
            self.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=120s")

    @contextmanager
    def out_of_service(self, node: str) -> Generator[None]:
        """Marks an unresponsive node as out of service within the block."""
        taint = "node.kubernetes.io/out-of-service"
        self.kubectl("taint", "node", node, f"{taint}=lost:NoExecute")
        try:
            yield
        finally:
            self.kubectl("taint", "node", node, f"{taint}-")

    def _kind(self, *arguments: str | Path) -> str:
        return sh(program("kind"), *arguments, env=self.environment)

    def _show_registry(self) -> None:
        """Configures the registry on the nodes."""
        if docker():
            networks = sh("docker", "inspect", "--format", "{{json .NetworkSettings.Networks}}", "kind-registry")
            if "kind" not in json.loads(networks):
                sh("docker", "network", "connect", "kind", "kind-registry")
            address = "kind-registry:5000"
        else:
            network = json.loads(sh("podman", "network", "inspect", "kind", env=self.environment))
            address = f"{network[0]['subnets'][0]['gateway']}:{PORT}"
        hosts = f"/etc/containerd/certs.d/{REGISTRY}"
        for node in self.nodes():
            write = f"mkdir -p {hosts} && printf '[host.\"http://{address}\"]\\n' > {hosts}/hosts.toml"
            self.on_node(node, "sh", "-c", write)

    def _make_volumes(self) -> None:
        """Creates some volumes on one worker, if the node image has no provisioner."""
        provisioner = self.kubectl("get", "storageclass", "standard", "--output=jsonpath={.provisioner}")
        if provisioner != "kubernetes.io/no-provisioner":
            return
        node = max(self.nodes())  # the control plane is no worker
        for volume in json.loads(self.kubectl("get", "persistentvolumes", "--output=json"))["items"]:
            if volume["status"]["phase"] == "Released":
                self.kubectl("delete", "persistentvolume", volume["metadata"]["name"])
        for number in range(4):
            path = f"/var/volumes/{number}"
            self.on_node(node, "mkdir", "-p", "-m", "777", path)
            affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            self.apply(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": f"volume-{number}"},
                    "spec": {
                        "storageClassName": "standard",
                        "capacity": {"storage": "5Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "hostPath": {"path": path},
                        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}},
                    },
                }
            )

    def _serve_registry(self) -> None:
        settings = {
            "version": 0.1,
            "http": {"addr": f":{PORT}"},
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(IMAGES)}},
        }
        file = self.folder / "registry.yml"
        file.write_text(json.dumps(settings))
        command = ["docker-registry", "serve", file]
        registry = Component(command, self.folder / "registry.log", f"http://{REGISTRY}/v2/")
        if not registry.is_healthy():
            registry.start()
            (self.folder / "registry.pid").write_text(str(registry.pid))
