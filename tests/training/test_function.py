"""`model.function`: a Ray Train loop of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from training_runs import Run, kill_driver, write_trainjob

pytestmark = pytest.mark.usefixtures("warm_ray")

LOOP = '''
"""Fits y = slope * x by gradient descent, with nothing but Ray Train's own interface."""

import tempfile
from pathlib import Path

import ray.train
import torch
from ray.train.torch import prepare_model


def train_loop(config):
    rank = ray.train.get_context().get_world_rank()
    model = torch.nn.Linear(1, 1, bias=False)
    first = 1
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder, "state.pt"))
        model.load_state_dict(state["model"])
        first = state["epoch"] + 1
    model = prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["learning_rate"])
    for epoch in range(first, config["epochs"] + 1):
        loss_sum = rows = 0
        for batch in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=16, dtypes=torch.float32):
            loss = (model(batch["x"][:, None])[:, 0] - batch["y"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(batch["x"])
            rows += len(batch["x"])
        if epoch == config.get("fails_in") and rank == 1:
            with Path(config["log"]).open("a") as log:
                print("failed", file=log)
            raise ArithmeticError("rank 1 cannot go on")
        with tempfile.TemporaryDirectory() as folder:
            plain = getattr(model, "module", model)
            torch.save({"model": plain.state_dict(), "epoch": epoch}, Path(folder, "state.pt"))
            ray.train.report(
                {"epoch": epoch, "loss": loss_sum / rows, "first": first},
                checkpoint=ray.train.Checkpoint.from_directory(folder) if rank == 0 else None,
            )
'''


def function_run(folder: Path, name: str = "own", **config: Any) -> Run:
    (folder / "own_loop.py").write_text(LOOP)
    for name in ("random", "tokenize"):
        (folder / f"{name}.py").write_text("raise RuntimeError('not the standard library')\n")
    rows = [(index / 100, 3 * index / 100) for index in range(100)]
    (folder / "rows.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    spec = {
        "model": {"function": {"name": "own_loop:train_loop", "config": {"learning_rate": 0.3, **config}}},
        "dataset": {"train": {"uri": "rows.csv"}},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
    }
    return write_trainjob(folder, name, spec)


def test_a_loop_continues_from_rays_checkpoint_after_its_driver_was_killed(tmp_path: Path):
    run = function_run(tmp_path, epochs=10)
    run.kill_at(lambda _: (run.folder / "metrics.jsonl").exists() and len(run.records("epoch")) > 2, kill_driver)
    *before, last = run.snapshots()
    records = run.records("epoch")
    assert [record["epoch"] for record in records] == [*range(1, 11)]
    assert records[0]["first"] == 1
    assert records[-1]["first"] > 1
    assert records[-1]["loss"] < 0.1 * records[0]["loss"]
    summary = run.read("summary.json")
    assert summary["metrics"]["loss"] == records[-1]["loss"]
    assert (Path(summary["checkpoint"]) / "state.pt").exists()
    assert (run.folder / "report.html").exists()

    assert (before[-1]["stage"], before[-1]["step"]) == ("Training", 10)
    for training in before:
        assert training.keys() & {"epochs", "steps", "percent"} == set()  # how much there is to do only it knows
    assert (last["stage"], last["percent"], last["step"]) == ("Finished", 100.0, 10)
    assert last["metrics"] == summary["metrics"]
    del last["latestCheckpoint"]  # of this attempt; summary.json keeps where it is
    assert run.snapshots() == [last]
    again = run.finish()
    assert again.stderr == ""
    assert "has finished before" in again.stdout
    assert "epoch 10" in again.stdout
    assert summary["checkpoint"] in again.stdout


def test_a_failure_counts_once_over_all_drivers(tmp_path: Path):
    run = function_run(tmp_path, epochs=3, fails_in=2, log=str(tmp_path / "log"))
    document = yaml.safe_load(run.file.read_text())
    document["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    document["spec"]["retries"] = 1
    run.file.write_text(yaml.safe_dump(document))
    snapshots = run.snapshots()
    assert (tmp_path / "log").read_text().count("failed") == 2
    restarts = [snapshot["message"] for snapshot in snapshots if "starting again" in snapshot["message"]]
    assert restarts == ["worker 1 failed: ArithmeticError: rank 1 cannot go on; starting again"]
    failure = snapshots[-1]["failure"]
    assert (failure["rank"], failure["exception"], failure["retryable"]) == (1, "ArithmeticError", False)
    assert snapshots[-1]["message"] == ""
    assert 'own_loop.py", line' in failure["traceback"]
    attempts = tmp_path / "runs" / "own-11111111" / "attempts.json"
    assert json.loads(attempts.read_text())["failures"] == 2

    done = run.start_and_wait()  # KubeRay was faster than the operator
    assert (tmp_path / "log").read_text().count("failed") == 3
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker 1 failed: ArithmeticError: rank 1 cannot go on" in done.stderr
    assert 'own_loop.py", line' in done.stderr  # its own traceback
    assert "trainjob/cli" not in done.stderr  # not ours
    assert "The same command continues" in done.stderr
