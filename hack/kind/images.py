"""Builds and pushes images, with Docker, or with buildah on Debian's Python if no registry is reachable."""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kind.engine import EngineError, docker, sh
from servers.programs import program, requirement, sources

ROOT = Path(__file__).parents[2]
BASE_IMAGE = "localhost/debian-python:bookworm"
NODE_PROGRAMS = ("coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler",
                 "kubeadm", "kubectl", "kubelet")  # fmt: skip
CERTIFICATES = "/etc/ssl/certs"
BUILD_SECONDS = 3600
"""Timeout of each command that builds or pushes an image, which may download gigabytes."""


@dataclass(frozen=True)
class Images:
    """The names for pulling the images."""

    kuberay: str
    minio: str
    operator: str
    trainer: str


def build(registry: str) -> Images:
    """Builds all images and pushes them to `registry`."""
    return Images(
        kuberay=build_server("kuberay-operator", registry),
        minio=build_server("minio", registry),
        operator=build_project("operator", registry),
        trainer=build_project("trainer", registry),
    )


def build_project(target: str, registry: str) -> str:
    """Builds a target of the project's Dockerfile, and pushes it with a tag derived from its content."""
    name = f"trainjob-{target}"
    if docker():
        sh("docker", "build", "--target", target, "--tag", name, ROOT, seconds=BUILD_SECONDS)
        number = sh("docker", "image", "inspect", "--format", "{{.Id}}", name)
    else:
        _make_base_image()
        # What fetches packages in the build is to trust what this machine trusts.
        trust = [f"--env={name}={CERTIFICATES}/ca-certificates.crt" for name in ("SSL_CERT_FILE", "PIP_CERT")]
        options = ["--layers", "--isolation=chroot", "--network=host", f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"]
        base = f"--build-arg=BASE_IMAGE={BASE_IMAGE}"
        build = ["buildah", "build", *options, *trust, base, "--target", target, "--tag", name]
        sh(*build, ROOT, seconds=BUILD_SECONDS)
        number = sh("buildah", "inspect", "--type=image", "--format", "{{.FromImageID}}", name)
    return push(name, f"{registry}/{name}:{number.removeprefix('sha256:')[:12]}")


def build_server(name: str, registry: str) -> str:
    """Builds an image with only one of the tests' servers, tagged with its version."""
    module = {"kuberay-operator": "kuberay", "minio": "minio"}[name]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2(program(name), Path(folder) / "server")
        (Path(folder) / "Dockerfile").write_text(
            'FROM scratch\nCOPY --chmod=755 server /manager\nUSER 65532:65532\nENTRYPOINT ["/manager"]\n'
        )
        build = ["docker", "build"] if docker() else ["buildah", "build", "--isolation=chroot"]
        sh(*build, "--tag", f"trainjob-{name}", folder, seconds=BUILD_SECONDS)
    return push(f"trainjob-{name}", f"{registry}/{name}:{requirement(module)[1]}")


def push(local: str, name: str) -> str:
    """Pushes an image and returns `name`."""
    if docker():
        sh("docker", "tag", local, name)
        sh("docker", "push", "--quiet", name, seconds=BUILD_SECONDS)
    else:
        fast = ["--compression-format=zstd", "--compression-level=1"]
        command = ["buildah", "push", "--quiet", *fast, "--tls-verify=false", local, f"docker://{name}"]
        sh(*command, seconds=BUILD_SECONDS)
    return name


def _make_base_image() -> None:
    if sh("buildah", "images", "--quiet", "--filter", f"reference={BASE_IMAGE}"):
        return
    with tempfile.TemporaryDirectory() as folder:
        packages = "ca-certificates,python3,python3-venv"
        command = ["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", folder]
        sh(*command, seconds=BUILD_SECONDS)
        for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
            shutil.rmtree(Path(folder) / waste)
        (Path(folder) / "var/lib/apt/lists/partial").mkdir(parents=True)
        (Path(folder) / "var/cache/apt/archives/partial").mkdir(parents=True)
        container = sh("buildah", "from", "scratch")
        sh("buildah", "copy", container, folder, "/")
        sh("buildah", "commit", "--rm", container, BASE_IMAGE)


def node_image(folder: Path) -> str:
    """kind's own node image if podman can pull it; otherwise one built from our binaries and Debian packages, which
    takes some minutes, once."""
    name = f"localhost/trainjob-node:{requirement('kubernetes')[1]}"
    if not sh("podman", "images", "--quiet", name):
        source = (sources("kind") / "pkg/apis/config/defaults/image.go").read_text()
        released = source.partition('const Image = "')[2].partition('"')[0]
        with suppress(EngineError):
            sh("podman", "pull", "--quiet", released)
            return released
        with tempfile.TemporaryDirectory(dir=folder) as work:
            binaries = Path(work) / "bin"
            binaries.mkdir()
            for binary in NODE_PROGRAMS:
                os.link(program(binary), binaries / binary)
            script = Path(__file__).parent / "node" / "build-node-image"
            sh(script, name, binaries, work, sources("kind"), seconds=BUILD_SECONDS)
    return name
