"""`model.function`: a Ray Train loop of one's own."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from minio_server import MinIO
from training_runs import LIMIT, Run, kill_driver, write_trainjob

from cluster.jobs import eventually
from code_servers import package_index
from trainjob.code.archive import pack
from trainjob.runs.owner import Owner
from trainjob.storage import Folder

pytestmark = pytest.mark.usefixtures("warm_ray")

LOOP = '''
"""Fits y = slope * x by gradient descent, with nothing but Ray Train's own interface."""

import os
import tempfile
import time
import hashlib
from pathlib import Path

import numpy as np
import ray.train
import torch
from ray.train.torch import prepare_model


def train_loop(config):
    rank = ray.train.get_context().get_world_rank()
    print("rank", rank, "begins")
    print("a child of", Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\\0", " "))
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
        assert sum(len(batch["x"]) for batch in ray.train.get_dataset_shard("validation").iter_batches()) == 20
        while epoch == 5 and Path(config["marks"], "hold").exists():
            time.sleep(0.05)
        if rank == 1 and (mark := Path(config["marks"], str(epoch))).exists():
            mark.unlink()
            raise ArithmeticError("rank 1 cannot go on")
        with tempfile.TemporaryDirectory() as folder:
            plain = getattr(model, "module", model)
            torch.save({"model": plain.state_dict(), "epoch": epoch}, Path(folder, "state.pt"))
            ray.train.report(
                {"epoch": epoch, "loss": loss_sum / rows, "first": torch.tensor(first), "rows": np.int64(rows)},
                checkpoint=ray.train.Checkpoint.from_directory(folder) if rank == 0 else None,
            )
'''


def function_run(folder: Path, **config: Any) -> Run:
    (folder / "own_loop.py").write_text(LOOP)
    for module in ("random", "tokenize"):
        (folder / f"{module}.py").write_text("raise RuntimeError('not the standard library')\n")
    rows = [(index / 100, 3 * index / 100) for index in range(100)]
    (folder / "rows.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    spec = {
        "model": {"function": {"name": "own_loop:train_loop", "config": {"learning_rate": 0.3, **config}}},
        "dataset": {"train": {"uri": "rows.csv"}},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
    }
    return write_trainjob(folder, "own", spec)


@pytest.mark.nightly
def test_a_driver_that_was_replaced_leaves_rays_checkpoints_alone(tmp_path: Path, minio: MinIO, bucket: str):
    """Ray Train would upload its next checkpoint, write down which there are, and delete all others."""
    run, folder = function_run(tmp_path, marks=str(tmp_path), epochs=10), Folder(f"s3://{bucket}/own", minio.endpoint)
    document = yaml.safe_load(run.file.read_text())
    document["spec"] |= {"storage": {"uri": f"s3://{bucket}", "endpoint": minio.endpoint}}
    document["spec"] |= {"checkpoints": {"keep": 1, "metric": "loss"}}
    run.file.write_text(yaml.safe_dump(document))
    (tmp_path / "hold").touch()  # none goes beyond epoch 5
    driver = run.start()
    metrics = "metrics.jsonl"
    eventually(lambda: folder.exists(metrics) and len(folder.read(metrics).splitlines()) > 3, LIMIT)
    before = contents(folder, tmp_path / "before")
    assert len([name for name in before if name.endswith("state.pt")]) == 1
    Owner(folder).claim()
    (tmp_path / "hold").unlink()
    output = driver.communicate(timeout=LIMIT)[0]
    assert driver.returncode == 2, output
    assert "another process has taken over this run" in output
    assert contents(folder, tmp_path / "after") == before


def contents(folder: Folder, copy: Path) -> dict[str, bytes]:
    """All files except the drivers' claims, the workers' logs and plots of metrics."""
    folder.download("", copy)
    others = {".claims", "logs", "tensorboard"}
    files = [path for path in copy.rglob("*") if path.is_file() and not others & set(path.parts)]
    return {str(path.relative_to(copy)): path.read_bytes() for path in files}


@pytest.mark.nightly
def test_a_loop_continues_from_rays_checkpoint(tmp_path: Path):
    """Its workers fail, then its driver is killed."""
    run = function_run(tmp_path, marks=str(tmp_path), epochs=10)
    document = yaml.safe_load(run.file.read_text())
    document["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"  # as on a cluster
    document["spec"]["retries"] = 1
    run.file.write_text(yaml.safe_dump(document))
    run.folder = run.folder.with_name("own-11111111")

    (tmp_path / "2").touch()  # rank 1 fails in epoch 2, once
    (tmp_path / "hold").touch()  # none goes beyond epoch 5
    run.kill_at(lambda _: (run.folder / "metrics.jsonl").exists() and len(run.records("epoch")) > 3, kill_driver)
    assert "worker 1 failed: ArithmeticError: rank 1 cannot go on; starting again" in run.output
    assert run.read("attempts.json")["failures"] == 1
    assert run.output.splitlines().count("rank 0 begins") == 2
    assert "rank 1 begins" not in run.output

    metrics = run.folder / "metrics.jsonl"  # as if killed before it had written the last report
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:-1]))

    (tmp_path / "hold").unlink()
    *training, last = run.snapshots()
    for each in training:
        assert each.keys() & {"epochs", "steps", "percent"} == set()  # how much there is to do only the loop knows
    assert (last["stage"], last["percent"], last["step"], last["message"]) == ("Finished", 100.0, 10, "")
    assert run.read("attempts.json")["failures"] == 1
    for attempt, starts in ((1, 2), (2, 1)):
        for rank in (0, 1):
            log = run.folder / "logs" / f"attempt-{attempt}" / f"rank-{rank}.log"
            assert log.read_text().count(f"rank {rank} begins\n") == starts
            assert log.read_text().count("fast.ray_fork_server") == starts
            assert "Dataset" not in log.read_text()  # Ray Data's own lines
    records, summary = run.records("epoch"), run.read("summary.json")
    assert [record["epoch"] for record in records] == [*range(1, 11)]
    assert [record["first"] for record in records[:2]] == [1, 2]
    assert records[-1]["first"] == 5
    assert records[-1]["loss"] < 0.1 * records[0]["loss"]
    assert summary["metrics"]["loss"] == records[-1]["loss"]
    assert (Path(summary["checkpoint"]) / "state.pt").exists()
    assert (run.folder / "report.html").exists()
    begun = run.read("attempts.json")["trainingSince"]
    assert len(begun) == 2
    before = [record["time"] for record in records if record["time"] < begun[1]]
    after = [record["time"] for record in records if record["time"] >= begun[1]]
    assert summary["seconds"]["training"] > before[-1] - begun[0] + after[-1] - begun[1]

    last = run.snapshot_again()
    assert (last["stage"], last["percent"], last["step"]) == ("Finished", 100.0, 10)
    assert last["metrics"] == summary["metrics"]
    again = run.again()
    assert "has already finished" in again
    assert "epoch 10" in again
    assert summary["checkpoint"] in again


def test_code_and_packages_without_an_image(tmp_path: Path):
    """The module is in an archive, and imports a package that is not installed."""
    loop = "import ray.train, tiny\n\ndef loop():\n    ray.train.report({'number': tiny.NUMBER})\n"
    (tmp_path / "code" / "own").mkdir(parents=True)
    (tmp_path / "code" / "own" / "packed_loop.py").write_text(loop)
    archive = pack(tmp_path / "code")
    name = f"{hashlib.sha256(archive).hexdigest()}.tar.gz"
    (tmp_path / name).write_bytes(archive)
    spec: dict[str, Any] = {
        "model": {"function": {"name": "own.packed_loop:loop"}},
        "code": {"uri": name},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
    }
    with package_index(tmp_path / "index", {"tiny": "NUMBER = 7"}) as url:
        spec["requirements"] = [f"tiny @ {url}/tiny/tiny-1.0-py3-none-any.whl"]
        run = write_trainjob(tmp_path, "packed", spec)
        statuses = run.snapshots()
    assert statuses[-1]["stage"] == "Finished", statuses[-1].get("failure")
    assert statuses[-1]["code"] == f"sha256:{name.removesuffix('.tar.gz')}"
    assert run.read("summary.json")["metrics"] == {"number": 7}
    assert run.read("summary.json")["code"] == statuses[-1]["code"]
    assert (run.folder / "code" / "requirements.lock").read_text().startswith("tiny @ ")
