"""`model.function`: a Ray Train loop of one's own."""

from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, kill_driver, write_trainjob

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
    rows = [(index / 100, 3 * index / 100) for index in range(100)]
    (folder / "rows.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    spec = {
        "model": {"function": {"name": "own_loop:train_loop", "config": {"learning_rate": 0.3, **config}}},
        "dataset": {"train": {"uri": "rows.csv"}},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
    }
    return write_trainjob(folder, name, spec)


def test_a_loop_trains_and_goes_on_from_rays_checkpoint_after_its_driver_was_killed(tmp_path: Path):
    run = function_run(tmp_path, epochs=10)
    run.kill_at(lambda _: (run.folder / "metrics.jsonl").exists() and len(run.records("epoch")) > 2, kill_driver)
    done = run.finish()
    assert done.stderr == ""
    records = run.records("epoch")
    assert [record["epoch"] for record in records] == [*range(1, 11)]
    assert records[0]["first"] == 1
    assert records[-1]["first"] > 1
    assert records[-1]["loss"] < 0.1 * records[0]["loss"]
    summary = run.read("summary.json")
    assert summary["metrics"]["loss"] == records[-1]["loss"]
    assert (Path(summary["checkpoint"]) / "state.pt").exists()
    assert "epoch 10" in done.stdout
    assert summary["checkpoint"] in done.stdout
    assert (run.folder / "report.html").exists()


def test_an_exception_on_one_worker(tmp_path: Path):
    run = function_run(tmp_path, epochs=3, fails_in=2)
    done = run.start_and_wait()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker 1 failed: ArithmeticError: rank 1 cannot go on" in done.stderr
    assert 'own_loop.py", line' in done.stderr  # its own traceback
    assert "trainjob/cli" not in done.stderr  # not ours
    assert "The same command continues" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:train_loop", "there is no module 'no_such_module'"),
        ("own_loop:no_such_function", "has no function 'no_such_function'"),
    ],
)
def test_a_function_that_is_not_there(tmp_path: Path, name: str, said: str):
    message = function_run(tmp_path).refused("--set", f"spec.model.function.name={name}")
    assert "spec.model.function.name: " in message
    assert said in message
