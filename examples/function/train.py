"""A plain Ray Train loop, written without trainjob: a regression of the disease's progression on ten measurements.

trainjob runs `train_loop` on every worker with `model.function.config` as its argument. The loop uses only Ray
Train's API: https://docs.ray.io/en/latest/train/getting-started-pytorch.html
"""

import tempfile
from pathlib import Path
from typing import Any

import ray.train
import torch
from ray.train.torch import get_device, prepare_model
from torch import Tensor, nn

TARGET = "progression"
SCALE = 100.0
"""The model predicts hundreds of points, which are numbers near 1."""
STATE = "state.pt"


def train_loop(config: dict[str, Any]) -> None:
    torch.manual_seed(config["seed"])
    network = build_network(config["hidden"])
    optimizer = torch.optim.Adam(network.parameters(), lr=config["learningRate"])
    first_epoch = resume(network, optimizer)
    model = prepare_model(network)
    train: Any = ray.train.get_dataset_shard("train")
    validation: Any = ray.train.get_dataset_shard("validation")
    device, batch_size = get_device(), config["batchSize"]
    for epoch in range(first_epoch, config["epochs"] + 1):
        model.train()
        for batch in train.iter_torch_batches(
            batch_size=batch_size, local_shuffle_buffer_size=1000, local_shuffle_seed=epoch, drop_last=True
        ):
            features, target = columns(batch, device)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(features), target).backward()
            optimizer.step()
        rmse = root_mean_squared_error(network, validation.iter_torch_batches(batch_size=256), device)
        report(epoch, {"epoch": epoch, "validation_rmse": rmse}, network, optimizer)


def build_network(hidden: int) -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(10), nn.Linear(10, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 1))


def columns(batch: dict[str, Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Features [n, 10] and target [n, 1]."""
    target = batch.pop(TARGET).to(device, torch.float32).unsqueeze(1) / SCALE
    return torch.stack(list(batch.values()), dim=1).to(device, torch.float32), target


@torch.no_grad()
def root_mean_squared_error(network: nn.Module, batches: Any, device: torch.device) -> float:
    """RMSE over the validation rows, in points; every worker has all of them."""
    network.eval()
    squares, rows = 0.0, 0
    for batch in batches:
        features, target = columns(batch, device)
        squares += nn.functional.mse_loss(network(features), target, reduction="sum").item()
        rows += len(target)
    return SCALE * (squares / rows) ** 0.5


def report(epoch: int, metrics: dict[str, float], network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Reports the metrics and, from rank 0, a checkpoint; Ray Train requires every worker to call it."""
    if ray.train.get_context().get_world_rank() != 0:
        ray.train.report(metrics)
        return
    state = {"epoch": epoch, "model": network.state_dict(), "optimizer": optimizer.state_dict()}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, Path(folder) / STATE)
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder))


def resume(network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Loads the latest checkpoint, if a run was interrupted; returns the next epoch, from 1."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return 1
    with checkpoint.as_directory() as folder:
        state = torch.load(Path(folder) / STATE)
    network.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1
