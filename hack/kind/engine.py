"""The container engine for kind's nodes and image builds: Docker, or podman with buildah."""

import os
import resource
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

PACKAGES = (
    "podman aardvark-dns buildah debootstrap containerd runc docker-registry jq gcc libc6-dev iptables iproute2 procps"
)
TOOLS = ("podman", "buildah", "debootstrap", "containerd", "runc", "docker-registry", "jq", "gcc")


class EngineError(Exception):
    """A command that failed or timed out, with its output; or a missing prerequisite."""


def sh(*command: str | Path, env: Mapping[str, str] | None = None, seconds: float = 600) -> str:
    """The command's output. Raises EngineError if it fails or times out after `seconds`."""
    line = " ".join(map(str, command))
    try:
        done = subprocess.run(command, text=True, capture_output=True, env=os.environ | (env or {}), timeout=seconds)
    except subprocess.TimeoutExpired as late:
        output = b"".join(part for part in (late.stdout, late.stderr) if part).decode(errors="replace")
        raise EngineError(f"{line}: has not ended after {seconds:.0f} s; its output until then:\n{output}") from late
    if done.returncode:
        raise EngineError(f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


@cache
def docker() -> bool:
    """Whether a Docker daemon answers; otherwise podman is used. Raises EngineError if podman cannot be used either."""
    if shutil.which("docker"):
        with suppress(EngineError):
            sh("docker", "info", seconds=60)
            return True
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        lacks = f"lacks {', '.join(missing)}" if missing else "is not run by root"
        raise EngineError(f"there is no Docker daemon, and podman's way {lacks}: as root, apt-get install {PACKAGES}")
    return False


def engine() -> str:
    """The program for running containers."""
    return "docker" if docker() else "podman"


def environment(folder: Path) -> dict[str, str]:
    """The environment in which kind and podman run; podman's own settings lie in `folder`.

    Without the capability SYS_RESOURCE a container cannot raise its limits; crun refuses hybrid cgroups; podman's limit
    of 2,048 processes would leave a pod 307 of them, systemd's share, which kills Ray's raylet.
    """
    if docker():
        return {}
    settings = folder / "containers.conf"
    files, processes = (resource.getrlimit(limit)[1] for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    processes = min(processes, 30_000)
    settings.write_text(
        f'[containers]\npids_limit = 0\ndefault_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]\n'
        '[engine]\nruntime = "runc"\nstop_timeout = 1\n'
    )
    return {"KIND_EXPERIMENTAL_PROVIDER": "podman", "CONTAINERS_CONF": str(settings)}
