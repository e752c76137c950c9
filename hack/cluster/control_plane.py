"""A Kubernetes control plane with KubeRay in local processes: no nodes, no containers, no root."""

import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cluster.client import Cluster
from cluster.component import ENDS_WITH_US, Component, free_ports
from servers.programs import program, sources


class ControlPlane(Cluster):
    """etcd, API server, controller manager and KubeRay, each a component with a name that may be stopped and started.

    Everything it writes is in `folder`; addresses, certificate and data stay the same from start to start.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "kubeconfig")
        self.folder = folder
        ports = free_ports(6)
        self.url = f"https://127.0.0.1:{ports[0]}"
        self.etcd_url = f"http://127.0.0.1:{ports[1]}"
        self._certificate = folder / "apiserver.crt"  # made by the API server at its first start
        self._write_credentials()
        self.components = {
            "etcd": self._etcd(peers=ports[2]),
            "kube-apiserver": self._api_server(ports[0]),
            "kube-controller-manager": self._controller_manager(ports[3]),
            "kuberay-operator": self._kuberay(ports[4], metrics=ports[5]),
        }

    def start(self, name: str, *flags: str) -> None:
        """Start one component with additional flags, and wait until it serves."""
        self.components[name].start(*flags)

    def stop(self, name: str) -> None:
        """Stop one component gracefully."""
        self.components[name].stop()

    def kill(self, name: str) -> None:
        """Kill one component like a crash."""
        self.components[name].kill()

    def restart(self, name: str, *flags: str) -> None:
        """Restart one component."""
        self.stop(name)
        self.start(name, *flags)

    def up(self) -> None:
        """Start everything."""
        self.start("etcd")
        self.start("kube-apiserver")
        self.start("kube-controller-manager")
        self.kubectl("apply", "--server-side", "-f", sources("kuberay") / "config" / "crd" / "bases")
        self.await_definitions()
        self.start("kuberay-operator")

    def down(self) -> None:
        """Kill everything; its data is no longer needed."""
        for component in reversed(self.components.values()):
            component.kill()

    def _write_credentials(self) -> None:
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "tests", "cluster": {"server": self.url, "certificate-authority": str(self._certificate)}}
            ],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "current-context": "tests",
        }
        self.kubeconfig.write_text(json.dumps(configuration))

    def component(self, name: str, health_url: str, *flags: str) -> Component:
        """One of its programs, which logs to `folder` and ends with this process."""
        command = [*ENDS_WITH_US, program(name), *flags]
        return Component(command, self.folder / f"{name}.log", health_url, self._certificate)

    def _etcd(self, peers: int) -> Component:
        peer_url = f"http://127.0.0.1:{peers}"
        return self.component(
            "etcd",
            f"{self.etcd_url}/health",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
        )

    def _api_server(self, port: int) -> Component:
        key = self._certificate.with_suffix(".key")
        return self.component(
            "kube-apiserver",
            f"{self.url}/readyz",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--cert-dir={self.folder}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=RBAC",
            "--feature-gates=MutatingAdmissionPolicy=true",  # for those of tests
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
            "--allow-privileged",
        )

    def _controller_manager(self, port: int) -> Component:
        key = self._certificate.with_suffix(".key")
        return self.component(
            "kube-controller-manager",
            f"https://127.0.0.1:{port}/healthz",
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self._certificate}",
            f"--tls-private-key-file={key}",
            f"--root-ca-file={self._certificate}",
            f"--service-account-private-key-file={key}",
            "--use-service-account-credentials",
            "--leader-elect=false",
        )

    def _kuberay(self, port: int, metrics: int) -> Component:
        return self.component(
            "kuberay-operator",
            f"http://127.0.0.1:{port}/healthz",
            f"--kubeconfig={self.kubeconfig}",
            f"--health-probe-bind-address=127.0.0.1:{port}",
            f"--metrics-addr=127.0.0.1:{metrics}",
            "--enable-leader-election=false",
            "--use-kubernetes-proxy",
            "--reconcile-concurrency=4",
        )


@contextmanager
def running(folder: Path) -> Generator[ControlPlane]:
    """A control plane with its files in `folder`, until the end of the block."""
    control_plane = ControlPlane(folder)
    try:
        control_plane.up()
        yield control_plane
    finally:
        control_plane.down()
