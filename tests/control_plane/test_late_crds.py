"""An operator that was installed before the CRDs: TrainJob's own and KubeRay's. The API server cannot stream lists,
like one before Kubernetes 1.34."""

from pathlib import Path

import pytest
from operator_process import OperatorProcess

from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from servers.programs import sources
from trainjob.crd import crd


def test_crds_that_are_installed_later_are_picked_up(tmp_path: Path):
    bare = ControlPlane(tmp_path)
    process: OperatorProcess | None = None
    try:
        bare.start("etcd")
        bare.start("kube-apiserver", "--feature-gates=WatchList=false")
        process = OperatorProcess(bare, tmp_path, [])
        _await_unready(process, "trainjobs cannot be listed")
        bare.apply(crd())
        _await_unready(process, "rayjobs cannot be listed")
        bare.kubectl("apply", "--server-side", "-f", sources("kuberay") / "config" / "crd" / "bases")
        bare.await_definitions()
        jobs = Jobs(bare, "default")
        jobs.create()
        process.wait_ready()
        jobs.until(phase="Pending", reason="Created")
        jobs.report("rayjob", "job", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
        jobs.until(phase="Succeeded")
    finally:
        if process is not None:
            process.kill()
        bare.down()


def _await_unready(process: OperatorProcess, why: str) -> None:
    eventually(lambda: why in process.log.read_text(), because=process.log.read_text)
    with pytest.raises(OSError, match="503"):
        process.get("/readyz")
