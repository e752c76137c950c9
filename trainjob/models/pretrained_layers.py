"""The layers of networks of transformers: their weights, activations, dropout, and which of them are trained."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import PreTrainedModel

from trainjob.errors import UserError


def head_of(network: PreTrainedModel) -> list[nn.Module]:
    """The layers after the encoder."""
    if network.base_model is not network:
        return [part for part in network.children() if part is not network.base_model]
    classifier = getattr(network, "classifier", None)  # CLIP's and SigLIP's have the encoder under another name
    return [classifier] if isinstance(classifier, nn.Module) else []


def layers_of(network: PreTrainedModel) -> Iterator[nn.Module]:
    """Yields the network's layers, with weights in float32 on the CPU: just before a layer is yielded, its weights on
    the meta device get initial values, and those of another type are converted. Weights outside of layers follow at the
    end."""
    is_empty, made = any(map(_is_empty, network.modules())), set[nn.Module]()
    for layer in _layers(network):
        _make_weights(network, layer, made)
        yield layer
    _make_weights(network, network, made)
    if is_empty:
        network.tie_weights()


def _layers(network: PreTrainedModel) -> list[nn.Module]:
    return [module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)]


@torch.no_grad()
def _make_weights(network: PreTrainedModel, part: nn.Module, made: set[nn.Module]) -> None:
    """Initializes on the CPU the weights of `part` that lie on the meta device, and converts its weights to float32.
    Skips the modules in `made`, and adds the others to it."""
    modules = [module for module in part.modules() if module not in made]
    made.update(modules)
    empty = list(filter(_is_empty, modules))
    for module in empty:
        module.to_empty(device="cpu", recurse=False)
    for module in reversed(modules) if empty else ():  # some modules initialize those inside them
        network._init_weights(module)  # noqa: SLF001  # the public method initializes all modules
    for tensor in _numbers_of(modules):
        tensor.data = tensor.data.float()


def _is_empty(module: nn.Module) -> bool:
    return any(tensor.is_meta for tensor in _own_tensors(module))


def _own_tensors(module: nn.Module) -> tuple[torch.Tensor, ...]:
    return (*module.parameters(recurse=False), *module.buffers(recurse=False))


def _numbers_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """The modules' own weights and buffers, except integers."""
    return [tensor for tensor in itertools.chain(*map(_own_tensors, modules)) if tensor.is_floating_point()]


@contextmanager
def computing_in_float32(network: PreTrainedModel) -> Generator[None]:
    """Within the block, the weights of each layer are float32 while the layer computes, and weights outside of layers
    all the time. Restores them afterwards."""
    before: dict[torch.Tensor, torch.Tensor] = {}

    def widen(tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor not in before:
                before[tensor], tensor.data = tensor.data, tensor.data.float()

    def restore(tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor in before:  # a layer may lie inside another
                tensor.data = before.pop(tensor)

    inside = {layer: _numbers_of(layer.modules()) for layer in _layers(network)}
    outside = set(_numbers_of(network.modules())).difference(*inside.values())
    with ExitStack() as afterwards:
        for layer, own in inside.items():
            afterwards.callback(layer.register_forward_pre_hook(lambda *_, own=own: widen(own)).remove)
            hook = layer.register_forward_hook(lambda *_, own=own: restore(own), always_call=True)
            afterwards.callback(hook.remove)
        widen(outside)
        afterwards.callback(restore, outside)
        yield


def recompute_activations(network: PreTrainedModel) -> None:
    """Makes the backward pass recompute the layers' activations. Raises UserError if the network cannot."""
    if not network.supports_gradient_checkpointing:
        raise UserError(f"spec.training.activationCheckpointing: transformers has none for {network.config.model_type}")
    earlier: Any = network.gradient_checkpointing_enable  # the name before transformers 5.23, deprecated since
    getattr(network, "activation_checkpointing_enable", earlier)({"use_reentrant": False})


def freeze_unused(network: nn.Module, answers: torch.Tensor) -> None:
    """Freezes the weights of `network` that its outputs `answers` do not depend on, such as CLIP's last normalization
    or a mask token: they get no gradients, and DistributedDataParallel waits for the gradient of each weight that is
    not frozen."""
    used: set[int] = set()
    visited: set[Any] = set()
    nodes = [answers.grad_fn]  # of the graph that autograd has recorded
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        used.add(id(getattr(node, "variable", None)))
        nodes += [earlier for earlier, _ in node.next_functions]
    for parameter in network.parameters():
        if id(parameter) not in used:
            parameter.requires_grad_(False)


def set_dropout(head: list[nn.Module], probability: float) -> bool:
    """Sets the probability of all dropout modules, whose name in config.json differs between architectures. Returns
    whether there are any."""
    modules = [module for part in head for module in part.modules() if isinstance(module, nn.Dropout)]
    for module in modules:
        module.p = probability
    return bool(modules)
