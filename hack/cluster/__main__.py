"""Runs a command, or a shell, on its own control plane: `cd hack && python -m cluster [COMMAND …]`."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster.control_plane import running
from servers.programs import program


def main() -> int:
    """Returns the command's exit status; the control plane ends with the command."""
    command = sys.argv[1:] or [os.environ.get("SHELL", "sh")]
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the command, which has the handler of its own
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="trainjob-cluster-") as name, running(Path(name)) as cluster:
        (cluster.folder / "kubectl").symlink_to(program("kubectl"))
        settings = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{name}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.call(command, env=os.environ | settings)


if __name__ == "__main__":
    sys.exit(main())
