"""The servers that the tests run, each built once per version from its Go module in this folder.

`python -m servers.programs [NAME …]` builds those of `make test`, and the named ones, before the tests: with a compiler
running beside them, tests exceed their time limits.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
BUILD_SECONDS = 3600  # a bare, slow machine takes a third of it for Kubernetes' API server
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "trainjob" / "bin"

PACKAGES = {  # of each program: the folder of its module, and what `go build` makes it of
    "actionlint": ("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
    "coredns": ("coredns", "."),
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
    "kind": ("kind", "sigs.k8s.io/kind"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-proxy": ("kubernetes", "k8s.io/kubernetes/cmd/kube-proxy"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubeadm": ("kubernetes", "k8s.io/kubernetes/cmd/kubeadm"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kubelet": ("kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    "kuberay-operator": ("kuberay", "github.com/ray-project/kuberay/ray-operator"),
    "kueue": ("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    "minio": ("minio", "github.com/minio/minio"),
}
TESTED = ("kube-apiserver", "kube-controller-manager", "kubectl", "minio", "helm", "kuberay-operator", "etcd",
          "actionlint")  # fmt: skip


def program(name: str) -> Path:
    """The program in $KUBEBUILDER_ASSETS or else in the user's cache folder; building it takes minutes."""
    given = Path(os.environ.get("KUBEBUILDER_ASSETS", "")) / name
    if given.is_absolute() and given.exists():
        return given
    module, package = PACKAGES[name]
    cached = CACHE / f"{name}-{requirement(module)[1]}"
    if not cached.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f".{module}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not cached.exists():
                _build(module, package, cached)
    return cached


def requirement(module: str) -> tuple[str, str]:
    """The requirement of the Go module in the folder `module`, and its pinned version."""
    lines = (HERE / module / "go.mod").read_text().splitlines()
    required, version = next(line.split()[1:] for line in lines if line.startswith("require ") and "(" not in line)
    return required, version


def sources(module: str) -> Path:
    """The folder with the requirement's source."""
    command = ["go", "mod", "download", "-json", requirement(module)[0]]
    done = subprocess.run(command, cwd=HERE / module, check=True, capture_output=True, timeout=BUILD_SECONDS)
    return Path(json.loads(done.stdout)["Dir"])


def _build(module: str, package: str, target: Path) -> None:
    assert shutil.which("go"), f"the tests need Go, to build {target.name}"
    print(f"Building {target.name}", file=sys.stderr)
    partial = target.with_name(f".{target.name}")
    version = f"k8s.io/component-base/version.gitVersion={requirement(module)[1]}"  # what Kubernetes says it is
    linking = ["-ldflags", f"-s -w -X {version}"]
    compiling = ["-trimpath", "-gcflags=all=-dwarf=false -c=1"]  # a process for each core is enough: no threads in it
    settings = {"CGO_ENABLED": "0", "GOGC": "off", "GOMEMLIMIT": "1GiB"}  # a fifth faster than with garbage collection
    command = ["go", "build", *compiling, *linking, "-o", partial, package]
    subprocess.run(command, cwd=HERE / module, env=os.environ | settings, check=True, timeout=BUILD_SECONDS)
    partial.rename(target)


def build_all(names: Iterable[str]) -> None:
    """Builds two modules at a time, because downloading and linking leave a core idle."""
    modules = [list(module) for _, module in groupby(names, key=lambda name: PACKAGES[name][0])]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda module: [program(name) for name in module], modules))


if __name__ == "__main__":
    build_all([*TESTED, *sys.argv[1:]])
