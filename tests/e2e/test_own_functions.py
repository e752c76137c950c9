"""Training functions of a user's own, on two pods."""

import json

import pytest

from cluster.jobs import eventually
from e2e.train_jobs import LONG, TrainJobs

MORE_EPOCHS = 5
UNTIL_RESUMED = f"""
    import tempfile
    import time
    from pathlib import Path

    import torch
    from ray import train
    from ray.train.torch import prepare_model

    def train_loop(config):
        '''Ends {MORE_EPOCHS} epochs after it has gone on from a checkpoint.'''
        model, first, last = torch.nn.Linear(1, 1), 1, 100_000
        if checkpoint := train.get_checkpoint():
            with checkpoint.as_directory() as folder:
                state = torch.load(Path(folder, "state.pt"))
            model.load_state_dict(state["model"])
            first, last = state["epoch"] + 1, state["epoch"] + {MORE_EPOCHS}
        model = prepare_model(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(first, last + 1):
            x = torch.rand(64, 1)
            loss = ((model(x) - config["slope"] * x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.5)
            with tempfile.TemporaryDirectory() as folder:
                torch.save({{"model": model.module.state_dict(), "epoch": epoch}}, Path(folder, "state.pt"))
                checkpoint = train.Checkpoint.from_directory(folder)
                rank = train.get_context().get_world_rank()
                train.report({{"epoch": epoch, "first": first}}, checkpoint=checkpoint if rank == 0 else None)
"""

RAISES = """
    from ray import train

    def train_loop(config):
        for step in range(1, 10):
            if step == 5 and train.get_context().get_world_rank() == 1:
                raise ArithmeticError("step 5 does not add up")
            train.report({"step": step})
"""

FILLS_MEMORY = """
    def train_loop(config):
        kept = []
        while True:
            kept.append(bytearray(b"x" * 2**26))
"""


@pytest.mark.core
def test_a_suspended_job_gives_its_pods_back_and_goes_on_later(jobs: TrainJobs) -> None:
    jobs.submit_function(UNTIL_RESUMED, {"slope": 2})
    jobs.until_true(lambda status: status.get("training", {}).get("metrics", {}).get("epoch", 0) >= 3, "epoch 3")
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until_phase("Suspended")
    eventually(lambda: not _ray_pods(jobs), LONG, lambda: f"pods are left: {_ray_pods(jobs)}")
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    status = jobs.until_phase("Succeeded")
    metrics = status["training"]["metrics"]
    assert status["attempt"] == 1
    assert metrics["first"] > 3
    assert metrics["epoch"] == metrics["first"] + MORE_EPOCHS - 1
    lines = jobs.store.read(f"{jobs.run()}/metrics.jsonl").splitlines()
    epochs = [record["epoch"] for record in map(json.loads, lines) if record["kind"] == "epoch"]
    assert epochs == list(range(1, metrics["epoch"] + 1))


def _ray_pods(jobs: TrainJobs) -> list[str]:
    return [pod["metadata"]["name"] for pod in jobs.cluster.find("pods", jobs.namespace, labels="ray.io/cluster")]


@pytest.mark.core
def test_an_exception_of_one_worker_is_told_with_its_rank(jobs: TrainJobs) -> None:
    jobs.submit_function(RAISES, retries=1)
    status = jobs.until_phase("Failed")
    failure = status["training"]["failure"]
    assert (failure["rank"], failure["exception"]) == (1, "ArithmeticError"), failure
    assert failure["message"] == "step 5 does not add up"
    assert 'raise ArithmeticError("step 5 does not add up")' in failure["traceback"]
    assert status["reason"] == "TrainingFailed"
    assert status["message"] == "worker 1 failed: ArithmeticError: step 5 does not add up"
    assert status["attempt"] == 1  # Ray Train used the one retry up on the same pods
    jobs.kubectl("wait", "--for=condition=Failed", "trainjob/job", "--timeout=30s")
    jobs.until_gone()


def test_a_worker_that_runs_out_of_memory_is_said_to(jobs: TrainJobs) -> None:
    jobs.submit_function(FILLS_MEMORY, retries=0, workers={"count": 1, "memory": "2Gi"})
    assert "memory" in jobs.until_phase("Failed")["message"].lower()
