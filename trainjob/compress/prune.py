"""Removes attention heads and feed-forward channels from a text classifier: whole rows and columns of its linear
layers, so that less is computed.

The least important units of each layer are removed. The importance of a unit is the change of the loss if it were
removed, to first order (Molchanov et al. 2019, https://arxiv.org/abs/1906.10771), summed over batches of training rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
from transformers.modeling_utils import PreTrainedModel

from trainjob.data.batches.batch import Batch
from trainjob.errors import UserError
from trainjob.kinds.targets.class_losses import SampleLosses
from trainjob.kinds.text_classifier.network import PRUNED, TextModule, set_linear

_HEADS, _CHANNELS = True, False
_KINDS = (
    (("attn.Wqkv",), 3, "attn.Wo", _HEADS),
    (("mlp.Wi",), 2, "mlp.Wo", _CHANNELS),
    (("attention.self.query", "attention.self.key", "attention.self.value"), 1, "attention.output.dense", _HEADS),
    (("intermediate.dense",), 1, "output.dense", _CHANNELS),
    (("attention.q_lin", "attention.k_lin", "attention.v_lin"), 1, "attention.out_lin", _HEADS),
    (("ffn.lin1",), 1, "ffn.lin2", _CHANNELS),
)
"""The prunable layers of ModernBERT, of BERT and similar models, and of DistilBERT: the linear layers that output heads
or channels, the number of such groups in each layer's output, the layer that consumes them, and whether they are
heads."""


@dataclass(frozen=True)
class Block:
    """Units, heads or channels, that lie side by side."""

    givers: tuple[str, ...]
    """The linear layers that output the units."""
    stacked: int
    """The number of times that all units appear in the output of each of these layers."""
    taker: str
    """The linear layer that consumes the units."""
    width: int
    """Values of a unit."""


def prune(classifier: TextModule, share: float, batches: Iterable[Batch], losses: SampleLosses) -> None:
    """Removes that share of the heads and channels of each layer, but never all. Raises UserError for an architecture
    that is not known."""
    network = classifier.network
    blocks = blocks_of(network)
    importances = _importances(classifier, blocks, batches, losses)
    shapes = dict(getattr(network.config, PRUNED, None) or {})
    for block, importance in zip(blocks, importances, strict=True):
        count = max(1, len(importance) - int(share * len(importance)))
        indices = importance.argsort(descending=True, stable=True)[:count].sort().values
        values = (indices[:, None] * block.width + torch.arange(block.width)).flatten()
        units = len(importance) * block.width
        rows = torch.cat([values + units * part for part in range(block.stacked)])
        for giver in block.givers:
            shapes[giver] = _cut(network, giver, rows, dim=0)
        shapes[block.taker] = _cut(network, block.taker, values, dim=1)
    setattr(network.config, PRUNED, shapes)


def blocks_of(network: PreTrainedModel) -> list[Block]:
    """Raises UserError for an architecture that is not known."""
    config = network.config
    linears = {name for name, module in network.named_modules() if isinstance(module, nn.Linear)}
    found = [
        Block(givers, stacked, prefix + taker, config.hidden_size // config.num_attention_heads if heads else 1)
        for suffixes, stacked, taker, heads in _KINDS
        for prefix in sorted(_prefixes(linears, suffixes[0]))
        if {prefix + taker, *(givers := tuple(prefix + suffix for suffix in suffixes))} <= linears
    ]
    if not found:
        raise UserError(
            f"a model of the type {config.model_type} cannot be pruned; supported encoders are ModernBERT, BERT and "
            "similar ones (RoBERTa, ELECTRA, CamemBERT …), and DistilBERT"
        )
    return found


def _prefixes(names: set[str], suffix: str) -> set[str]:
    """The parts of the names before `suffix`, which begins a step of a name."""
    return {name.removesuffix(suffix) for name in names if f".{name}".endswith(f".{suffix}")}


def _importances(
    classifier: TextModule, blocks: list[Block], batches: Iterable[Batch], losses: SampleLosses
) -> list[torch.Tensor]:
    """The importance of the units of each block, float32 [units]."""
    network = classifier.network
    takers = [network.get_submodule(block.taker) for block in blocks]
    weights = [taker.weight for taker in takers if isinstance(taker, nn.Linear)]
    sums = [torch.zeros(weight.shape[1] // block.width) for weight, block in zip(weights, blocks, strict=True)]
    classifier.eval()
    for batch in batches:
        loss = losses(classifier(**batch.inputs), batch.labels).mean()
        for total, weight, gradient in zip(sums, weights, torch.autograd.grad(loss, weights), strict=True):
            total += (weight.detach() * gradient).sum(dim=0).reshape(len(total), -1).sum(dim=1).abs()
    return sums


def _cut(network: PreTrainedModel, name: str, indices: torch.Tensor, dim: int) -> tuple[int, int]:
    """Keeps these rows (dim 0) or columns (dim 1) of a linear layer's weight; returns its inputs and outputs."""
    old = network.get_submodule(name)
    assert isinstance(old, nn.Linear)
    weight = old.weight.detach().index_select(dim, indices)
    new = set_linear(network, name, weight.shape[1], weight.shape[0])
    with torch.no_grad():
        new.weight.copy_(weight)
        if (bias := dict(old.named_parameters()).get("bias")) is not None:
            new.bias.copy_(bias[indices] if dim == 0 else bias)
    return weight.shape[1], weight.shape[0]
