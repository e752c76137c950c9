"""Locks and installs a function's packages with uv, beside those that are installed already."""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from trainjob.errors import TransientError, UserError

LAST_LINES = 15
_TRANSIENT = re.compile(
    r"error sending request|Failed to fetch|timed out|dns error|Connection refused|5\d\d (Server|Service)"
)


def lock(requirements: Sequence[str]) -> bytes:
    """The exact versions of `requirements` and of their dependencies, with digests, as requirements.txt; without the
    packages that are installed here, whose versions stay.

    Raises UserError if no versions fit, and TransientError if the package index does not answer.
    """
    installed = {each.name: each.version for each in distributions()}
    # A local version, such as PyTorch's 2.11.0+cpu, is on no public index: uv could not resolve it.
    local = [name for name, version in installed.items() if "+" in version]
    pinned = [f"{name}=={version}" for name, version in installed.items() if name not in local]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {"wanted.in": requirements, "installed.txt": pinned, "local.txt": local}
        for file, lines in files.items():
            (folder / file).write_text("".join(f"{line}\n" for line in lines))
        options = ["--constraints", "installed.txt", "--excludes", "local.txt", "--output-file", "lock.txt"]
        plain = ["--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
        left_out = [f"--no-emit-package={name}" for name in installed]
        _uv(folder, "pip", "compile", "wanted.in", *options, *plain, *left_out)
        return (folder / "lock.txt").read_bytes()


def install(locked: bytes, cache: Path) -> Path:
    """Installs locked packages once on this machine, in a folder of `cache`, and returns it. Raises UserError if one
    cannot be installed or has another digest, and TransientError if the package index does not answer."""
    target = cache / f"packages-{hashlib.sha256(locked + sys.version.encode()).hexdigest()[:16]}"
    complete = target.with_suffix(".complete")
    cache.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not complete.exists():
            requirements = target.with_suffix(".txt")
            requirements.write_bytes(locked)
            options = ["--no-deps", "--require-hashes", "--quiet", "--target", str(target)]
            _uv(cache, "pip", "install", *options, "--requirements", str(requirements))
            complete.touch()
    return target


def _uv(folder: Path, *arguments: str) -> None:
    from uv import find_uv_bin

    environment = os.environ | {"UV_HTTP_RETRIES": "1", "NO_COLOR": "1"}
    command = [find_uv_bin(), *arguments, "--python", sys.executable]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return
    output = "\n".join(done.stderr.strip().splitlines()[-LAST_LINES:])
    if _TRANSIENT.search(done.stderr):
        raise TransientError(f"spec.requirements: the package index does not answer:\n{output}")
    raise UserError(f"spec.requirements cannot be installed:\n{output}")
