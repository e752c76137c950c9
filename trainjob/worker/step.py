"""The computation of an optimizer step on one rank."""

from typing import Any

import torch

from trainjob.api import TrainJobSpec
from trainjob.data import Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.models import Trainable
from trainjob.worker.optim import build_optimizer


class Step:
    """Forward and backward passes, and the update of the weights. It knows no other ranks."""

    def __init__(
        self,
        spec: TrainJobSpec,
        preprocessor: Preprocessor,
        module: Trainable[Any],
        model: torch.nn.Module,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """`model` is the module to call: `module`, or `module` in DistributedDataParallel. `dtype` is the data type of
        the forward pass. Raises UserError if the spec does not fit the labels."""
        self.module, self.model, self.device, self.dtype = module, model, device, dtype
        self.objective = preprocessor.target.objective(spec, module)
        self.optimizer = build_optimizer(spec.training.optimizer, module.parameters(), module.rate_factor)
        self.scaler = torch.GradScaler(device.type, enabled=dtype == torch.float16)
        self._clipping = spec.training.gradient_clipping

    def answers(self, batch: Batch) -> torch.Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self.model(**batch.inputs)

    def backward(self, batch: Batch, divisor: torch.Tensor) -> torch.Tensor:
        """Adds the gradients of the batch's losses, each divided by `divisor`, float32 []. Returns the losses."""
        losses = self.objective.losses(self.answers(batch), batch) * batch.is_real
        self.scaler.scale(losses.sum() / divisor).backward()
        return losses

    def update(self) -> None:
        """Updates the weights, and drops the gradients."""
        if self._clipping is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clipping)
        self.scaler.step(self.optimizer)  # skips the step if a gradient is too large for float16
        self.scaler.update()
        self.optimizer.zero_grad()
