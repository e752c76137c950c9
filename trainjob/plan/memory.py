"""The memory of an optimizer step, from a step on tensors without data."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from trainjob.api import Model, TrainJobSpec
from trainjob.data import Examples, Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import Shard, collate
from trainjob.models import Trainable, build
from trainjob.models.stand_in import cpu_for_gpu
from trainjob.plan.live_bytes import LiveBytes, bytes_of, state_of
from trainjob.plan.sharded import gathered_bytes, weights_of_units
from trainjob.worker.placement import bytes_of as state_bytes
from trainjob.worker.placement import is_to_be_sharded, mesh_shape
from trainjob.worker.step import Step

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Memory:
    """Bytes of one worker at the peak of a step."""

    weights: int
    """Weights and buffers."""
    gradients: int
    optimizer: int
    activations: int
    """Activations and everything else, such as copies of the weights in another type."""

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


class NotTraceable(Exception):
    """The memory of a network cannot be computed, as its shapes depend on numbers."""


@dataclass(frozen=True)
class Traced:
    """A model to be traced with any number of rows."""

    spec: TrainJobSpec
    model: Model
    """The spec's model, on this machine."""
    preprocessor: Preprocessor
    examples: Examples
    """Training rows. The longest are traced."""
    dtype: torch.dtype
    """The type of the forward pass."""
    capacity: int | None = None
    """Bytes of memory of a worker's GPU, if known."""

    @property
    def on_gpu(self) -> bool:
        return self.spec.workers.gpus > 0

    @property
    def rows_per_worker(self) -> int:
        """Rows of a batch for each worker."""
        return Shard(0, self.spec.workers.count, self.spec.training.batch_size, 0).rows_per_rank

    def memory(self, rows: int) -> Memory:
        """The memory of a worker with this many rows of each batch. Raises UserError if the model cannot be built,
        NotTraceable if the network cannot be traced."""
        whole, needed, units = self._trace(rows, as_shard=False)
        shards = self._shards(needed)
        if shards == 1:
            return whole
        gathering, _, _ = self._trace(rows, as_shard=True)
        activations = gathering.activations + gathered_bytes(*units, self.dtype.itemsize)
        if self.spec.training.cpu_offload and self.on_gpu:
            return Memory(0, 0, 0, activations)
        return Memory(whole.weights // shards, whole.gradients // shards, whole.optimizer // shards, activations)

    def _trace(self, rows: int, as_shard: bool) -> tuple[Memory, int, tuple[int, int]]:
        """The memory without sharding; the bytes that decide about sharding; and the weights outside of layers and of
        the largest layer. `as_shard`: with weights in the type of the forward pass, and without gradients."""
        batch = _batch(self, rows)
        with cpu_for_gpu() if self.on_gpu else nullcontext():
            with torch.device("meta"):
                module = build(self.model, self.preprocessor)
            needed, units = state_bytes(module), weights_of_units(module)
            try:
                with FakeTensorMode(allow_non_fake_inputs=True) as fakes:
                    _prepare(self, module, as_shard)
                    return _measure(self, module, _faked(batch, fakes), as_shard), needed, units
            except (RuntimeError, NotImplementedError) as error:
                raise NotTraceable(
                    f"the memory of this network cannot be computed: {' '.join(str(error).split())[:200]}"
                ) from error

    def _shards(self, needed: int) -> int:
        """The number of workers that share a copy of the model."""
        workers = self.spec.workers
        if not is_to_be_sharded(self.spec.training.sharding, needed, self.capacity, workers.count):
            return 1
        per_node = workers.per_pod or workers.count
        return mesh_shape(needed, self.capacity, [per_node] * workers.count)[1]


def _prepare(traced: Traced, module: Trainable[Any], as_shard: bool) -> None:
    """Gives a module of the meta device fake tensors, and sets it up for training as a worker does."""
    _empty_on_cpu(module)
    is_float32 = traced.dtype == torch.float32
    training = traced.spec.training
    if training.activation_checkpointing:
        module.recompute_activations()
    elif traced.on_gpu and traced.dtype == torch.bfloat16 and not as_shard:
        module.round_weights()
    if not traced.on_gpu and not is_float32:
        module.use_plain_attention()
    module.train()


def _empty_on_cpu(module: nn.Module) -> None:
    """Replaces all tensors by empty ones on the CPU; shared tensors stay shared."""
    made: dict[Tensor, Tensor] = {}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):  # noqa: SLF001
            for name, tensor in tensors.items():
                if tensor is not None:
                    if tensor not in made:
                        empty = torch.empty_like(tensor, device=CPU)
                        is_weight = isinstance(tensor, nn.Parameter)
                        made[tensor] = nn.Parameter(empty, tensor.requires_grad) if is_weight else empty
                    tensors[name] = made[tensor]  # pyrefly: ignore[unsupported-operation]


def _batch(traced: Traced, rows: int) -> Batch:
    """The longest rows."""
    longest = np.argsort(-traced.examples.lengths, kind="stable")
    batch = collate(traced.preprocessor, traced.examples.take(np.resize(longest[:rows], rows)))
    if traced.spec.training.distillation is not None:
        batch = replace(batch, teacher=torch.zeros(rows, traced.preprocessor.target.width))
    return batch.without_full_mask() if traced.on_gpu else batch


def _faked(batch: Batch, fakes: FakeTensorMode) -> Batch:
    inputs: dict[str, Tensor] = {name: fakes.from_tensor(tensor) for name, tensor in batch.inputs.items()}
    teacher = None if batch.teacher is None else fakes.from_tensor(batch.teacher)
    return replace(batch, inputs=inputs, labels=fakes.from_tensor(batch.labels), teacher=teacher)


def _measure(traced: Traced, module: Trainable[Any], batch: Batch, as_shard: bool) -> Memory:
    """Takes two steps: the first makes the optimizer's state."""
    spec = traced.spec
    training = spec.training.model_copy(update={"compile": False})
    step = Step(spec.model_copy(update={"training": training}), traced.preprocessor, module, module, CPU, traced.dtype)
    step.scaler = torch.GradScaler("cpu", enabled=False)  # looks at numbers
    keeps_gradients = (spec.workers.count > 1 or training.gradient_accumulation > 1) and not as_shard
    if as_shard:
        _without_gradients(module, traced.dtype)
    weights = [*module.parameters(), *module.buffers()]
    with LiveBytes() as live, _AutocastOfGPUs() if traced.on_gpu else nullcontext():
        live.add([*weights, *batch.inputs.values(), batch.labels])
        for _ in range(2):
            live.peak = live.now
            if keeps_gradients:
                for weight in module.parameters():
                    weight.grad = torch.zeros_like(weight) if weight.requires_grad else None
            step.backward(batch, torch.ones(()))
            gradients = bytes_of(weight.grad for weight in module.parameters())
            step.update()
    weight_bytes, optimizer = bytes_of(weights), bytes_of(state_of(step.optimizer))
    return Memory(weight_bytes, gradients, optimizer, live.peak - weight_bytes - gradients - optimizer)


def _without_gradients(module: nn.Module, dtype: torch.dtype) -> None:
    """Converts the weights, and drops each gradient once it is computed."""
    for weight in module.parameters():
        weight.data = weight.data.to(dtype)
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(_drop_gradient)


def _drop_gradient(weight: Tensor) -> None:
    weight.grad = None


_IN_FLOAT32 = frozenset(
    (functional.layer_norm, functional.group_norm, functional.softmax, functional.log_softmax, torch.softmax)
)


class _AutocastOfGPUs(TorchFunctionMode):
    """Computes in float32 the operations that autocast computes in float32 on GPUs but not on CPUs."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _IN_FLOAT32 and torch.is_autocast_enabled("cpu"):
            args = tuple(
                each.float() if isinstance(each, Tensor) and each.is_floating_point() else each for each in args
            )
        return func(*args, **kwargs or {})
