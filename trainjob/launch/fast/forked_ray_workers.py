"""Lets Ray fork its worker processes from one that has imported their libraries, instead of starting a new Python."""

import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import trainjob
from trainjob.launch.fast import ray_worker
from trainjob.versions import versions


def runtime_environment(threads: int, modules: Sequence[str], *, own_cluster: bool) -> dict[str, str] | None:
    """Ray's runtime environment whose processes are forked after `modules` have been imported; None if a node of the
    cluster may have other packages installed than the driver. `own_cluster`: whether the cluster ends with the run."""
    address = os.environ.get("RAY_ADDRESS", f"of {os.getpid()}")
    if sys.platform != "linux" or not (own_cluster or address.startswith("127.0.0.1:")):
        return None
    packages = ",".join([*modules, *ray_worker.LIBRARIES])
    if own_cluster and "RAY_ADDRESS" in os.environ:
        name = ray_worker.POD_SERVER
    else:
        state = repr((sys.executable, threads, packages, _state_of_libraries()))
        name = f"trainjob {address} {hashlib.blake2b(state.encode(), digest_size=8).hexdigest()}"
    if own_cluster:
        ray_worker.start_server(name, str(threads), packages, os.getpid())
    command = [sys.executable, "-I", "-S", ray_worker.__file__, name, str(threads), packages]
    return {"py_executable": shlex.join(command)}


def _state_of_libraries() -> tuple[dict[str, str], float]:
    """A value that changes with the installed packages: a cluster may outlive an installation."""
    return versions(), max(file.stat().st_mtime for file in Path(trainjob.__file__).parent.rglob("*.py"))
