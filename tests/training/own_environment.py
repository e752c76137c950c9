"""Environments of packages that do not agree with those that are tested."""

import fcntl
import subprocess
import sys
from pathlib import Path

from servers.programs import CACHE


def environment(package: str) -> Path:
    """The folder of the programs of an environment with `package`, such as mlflow==3.17.2, in the cache folder."""
    folder = CACHE.parent / package.replace("==", "-")
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            uv = Path(sys.executable).parent / "uv"
            subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
            install = [uv, "pip", "install", "--quiet", "--system-certs", "--python", folder / "bin" / "python"]
            subprocess.run([*install, package], check=True)
            (folder / "complete").touch()
    return folder / "bin"
