"""The trainer image on kind's workers with podman, unpacked once instead of by each worker of each cluster, which takes
a minute of two cores and 11 GB. The workers share its immutable files through hard links.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from kind.engine import sh
from kind.images import BUILD_SECONDS

CONTAINERD = "/var/lib/containerd"
"""containerd's image folder on a node."""

_COMMON, _WORKER = "common", "worker-"

_PULL = """
printf 'version = 2\\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\\n' > /tmp/config.toml
containerd --config /tmp/config.toml > /tmp/log 2>&1 & containerd=$!
images() { ctr --namespace=k8s.io images "$@"; }
for _ in $(seq 300); do images list > /tmp/images 2>&1 && break; sleep 0.1; done
images pull --plain-http "$1" > /tmp/pulled || { tail -n 5 /tmp/images /tmp/log >&2; exit 1; }
images list --quiet | grep "^${1%:*}:" | grep --invert-match --line-regexp "$1" | xargs --no-run-if-empty \\
    ctr --namespace=k8s.io images remove --sync
kill $containerd; wait $containerd || true
"""
"""A script that pulls its argument, an image, reusing existing layers, and removes older images of the same name."""


def worker_folders(folder: Path, nodes: str, image: str, count: int, environment: Mapping[str, str]) -> list[Path]:
    """Creates a folder to mount as `CONTAINERD` for each worker of a new cluster, with the content of the image `nodes`
    and with `image`."""
    remove_workers(folder)
    digest = sh("podman", "image", "inspect", "--format={{.Id}}", nodes)
    common = folder / f"{_COMMON}-{digest[:12]}"
    run = ("podman", "run", "--rm", "--privileged", "--network=host")
    if not common.exists():
        shutil.rmtree(folder, ignore_errors=True)
        new = folder / "new"
        new.mkdir(parents=True)
        copy = ("--entrypoint=cp", nodes, "--archive", f"{CONTAINERD}/.", "/new")
        sh(*run, f"--volume={new}:/new", *copy, env=environment)
        new.rename(common)
    pull = ("--entrypoint=sh", nodes, "-euc", _PULL, "sh", image)
    sh(*run, f"--volume={common}:{CONTAINERD}", *pull, env=environment, seconds=BUILD_SECONDS)
    return [_shared(common, folder / f"{_WORKER}{number}") for number in range(count)]


def remove_workers(folder: Path) -> None:
    """Removes the folders of a deleted cluster's workers."""
    for worker in folder.glob(f"{_WORKER}*"):
        shutil.rmtree(worker)


def _shared(common: Path, worker: Path) -> Path:
    """Hard links to all files of `common`, but copies of containerd's databases."""
    sh("cp", "--archive", "--link", common, worker)
    for database in common.glob("*/*.db"):
        (worker / database.relative_to(common)).unlink()
        shutil.copy2(database, worker / database.relative_to(common))
    return worker
