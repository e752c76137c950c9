"""Scores a model on batches: in training, on every rank, and in `trainjob evaluate`."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from trainjob.data.batches.batch import Batch
from trainjob.models.objective import Objective, Tally


def _ignore(batch: Batch, outputs: Tensor) -> None:
    pass


def tally_batches(
    module: nn.Module,
    objective: Objective,
    batches: Iterable[Batch],
    device: torch.device,
    dtype: torch.dtype,
    on_outputs: Callable[[Batch, Tensor], None] = _ignore,
) -> Tally:
    """Tallies the outputs of a module for some batches; the forward pass is computed in `dtype`.

    Dummy batches (see `Batch.is_real`) are computed but not tallied. `on_outputs` is called with each of the others, on
    the device, and with its outputs. The module stays in its mode, training or evaluation.
    """
    tally, was_training = objective.tally(device), module.training
    module.eval()
    with torch.inference_mode():
        for batch in batches:
            moved = batch.to(device)
            with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
                outputs = module(**moved.inputs).to(device)  # ONNX Runtime's are on the CPU
            if batch.is_real:
                tally.add(moved, outputs)
                on_outputs(moved, outputs)
    module.train(was_training)
    return tally
