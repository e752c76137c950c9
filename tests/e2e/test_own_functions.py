"""Training functions of a user's own, on two pods; one of them comes from a folder that `submit --code` uploads."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from cluster.jobs import eventually
from e2e.train_jobs import LONG, TrainJobs

RAISES_ONCE_RESUMED = """
    import tempfile
    import time
    from pathlib import Path

    import torch
    from ray import train
    from ray.train.torch import prepare_model

    def train_loop(config):
        '''Trains until it is stopped; when it has gone on from a checkpoint, rank 1 fails in the third epoch.'''
        model, first, last = torch.nn.Linear(1, 1), 1, 100_000
        rank = train.get_context().get_world_rank()
        if checkpoint := train.get_checkpoint():
            with checkpoint.as_directory() as folder:
                state = torch.load(Path(folder, "state.pt"))
            model.load_state_dict(state["model"])
            first, last = state["epoch"] + 1, state["epoch"] + 3
        model = prepare_model(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(first, last + 1):
            x = torch.rand(64, 1)
            loss = ((model(x) - config["slope"] * x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            if epoch == last and rank == 1:
                train.get_all_reported_checkpoints()  # once Ray has taken what was reported of the epoch before
                raise ArithmeticError(f"epoch {epoch} does not add up")
            optimizer.step()
            time.sleep(0.5)
            with tempfile.TemporaryDirectory() as folder:
                torch.save({"model": model.module.state_dict(), "epoch": epoch}, Path(folder, "state.pt"))
                checkpoint = train.Checkpoint.from_directory(folder)
                train.report({"epoch": epoch, "first": first}, checkpoint=checkpoint if rank == 0 else None)
"""

FILLS_MEMORY = """
    def train_loop(config):
        from filler import SIZE

        kept = []
        while True:
            kept.append(bytearray(b"x" * SIZE))
"""


@pytest.mark.core
def test_a_suspended_job_gives_its_pods_back_goes_on_later_and_fails_for_its_own_exception(
    jobs: TrainJobs, tmp_path: Path
) -> None:
    folder, file = tmp_path / "code", tmp_path / "trainjob.yaml"
    folder.mkdir()
    (folder / "own.py").write_text(dedent(RAISES_ONCE_RESUMED))
    file.write_text(json.dumps(jobs.function({"slope": 2}, retries=1)))
    uploaded = jobs.trainjob("submit", str(file), "--code", str(folder)).splitlines()[0]
    status = jobs.until_true(
        lambda status: status.get("training", {}).get("metrics", {}).get("epoch", 0) >= 3, "epoch 3"
    )
    assert uploaded.endswith(f"/{status['training']['code'].removeprefix('sha256:')}.tar.gz")
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until_phase("Suspended")
    eventually(lambda: not _ray_pods(jobs), LONG, lambda: f"pods are left: {_ray_pods(jobs)}")
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})

    status = jobs.until_phase("Failed")
    assert status["attempt"] == 1  # Ray Train used the one retry up on the same pods
    lines = jobs.store.read(f"{jobs.run()}/metrics.jsonl").splitlines()
    records = [record for record in map(json.loads, lines) if record["kind"] == "epoch"]
    epochs = [record["epoch"] for record in records]
    assert epochs == list(range(1, len(epochs) + 1))
    assert records[0]["first"] == 1
    assert records[-1]["first"] > 3

    failure, message = status["training"]["failure"], f"epoch {len(epochs) + 1} does not add up"
    assert (failure["rank"], failure["exception"], failure["message"]) == (1, "ArithmeticError", message)
    assert 'raise ArithmeticError(f"epoch {epoch} does not add up")' in failure["traceback"]
    assert status["reason"] == "TrainingFailed"
    assert status["message"] == f"worker 1 failed: ArithmeticError: {message}"
    jobs.kubectl("wait", "--for=condition=Failed", "trainjob/job", "--timeout=30s")
    jobs.until_gone()


def _ray_pods(jobs: TrainJobs) -> list[str]:
    return [pod["metadata"]["name"] for pod in jobs.cluster.find("pods", jobs.namespace, labels="ray.io/cluster")]


def test_a_worker_that_imports_a_required_package_runs_out_of_memory(jobs: TrainJobs, tmp_path: Path) -> None:
    code, packages = jobs.module("own", FILLS_MEMORY), jobs.wheel(tmp_path, "filler", "SIZE = 2**26")
    pods = {field: code[field] + packages[field] for field in code}
    workers = {"count": 1, "memory": "2Gi"}
    job = jobs.function({}, pods=pods, requirements=["filler"], retries=0, workers=workers)
    jobs.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    assert "memory" in jobs.until_phase("Failed")["message"].lower()
    assert jobs.store.read(f"{jobs.run()}/code/requirements.lock").startswith(b"filler==1.0 ")
