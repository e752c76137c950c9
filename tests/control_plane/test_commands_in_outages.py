"""Commands that go on while the API server is away, and just after its start, when it refuses what it allows."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from operator_process import account

from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually, new_namespace

SAID = "trying again"


@contextmanager
def running(kubeconfig: Path, log: Path, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """A command that writes all it says into a file."""
    command = [sys.executable, "-m", "trainjob", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.kill()


def test_waiting_outlasts_a_restart_of_the_api_server(control_plane: ControlPlane, tmp_path: Path):
    with new_namespace(control_plane) as namespace:
        jobs = Jobs(control_plane, namespace)
        reader = account(jobs, tmp_path)
        jobs.kubectl("create", "role", "reader", "--verb=get,list,watch", "--resource=trainjobs.trainjob.dev,pods")
        jobs.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:operator")
        jobs.create()
        jobs.report("trainjobs", "job", {"phase": "Pending", "reason": "Created"})
        waited, logged = tmp_path / "waited", tmp_path / "logged"
        with (
            running(reader, waited, "wait", "job", "--namespace", namespace) as wait,
            running(reader, logged, "logs", "job", "--follow", "--namespace", namespace) as logs,
        ):
            eventually(lambda: "waiting: Pending, Created" in waited.read_text() and logged.read_text(), seconds=60)
            control_plane.kill("kube-apiserver")
            eventually(lambda: SAID in waited.read_text() and SAID in logged.read_text(), seconds=60)
            control_plane.start("kube-apiserver")
            jobs.report("trainjobs", "job", {"phase": "Succeeded"})
            assert (wait.wait(60), logs.wait(60)) == (0, 0), waited.read_text() + logged.read_text()
        assert waited.read_text().endswith("trainjob.trainjob.dev/job: Succeeded\n")
