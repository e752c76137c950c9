"""Forward passes in bfloat16 with master weights in float32 (Micikevicius et al., 2018,
https://arxiv.org/abs/1710.03740): each pass rounds all weights once. See docs/decisions/weights-rounded-at-once.md."""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from transformers.modeling_utils import PreTrainedModel

from trainjob.models.trainable import Trainable

PROBE_TOKENS = 8
"""Length of the text that `can_round` tries."""


def call(module: Trainable[PreTrainedModel], **inputs: Any) -> Any:
    """The output of the module's network, with rounded weights if the module `rounds`."""
    return _call_rounded(module.network, **inputs) if module.rounds else module.network(**inputs)


def _call_rounded(network: PreTrainedModel, **inputs: Any) -> Any:
    """Calls the network with all weights in bfloat16; gradients go to its own float32 weights."""
    weights = {name: weight.to(torch.bfloat16) for name, weight in network.named_parameters()}
    with torch.autocast(network.device.type, enabled=False):
        return functional_call(network, weights, kwargs=inputs)


def can_round(module: Trainable[PreTrainedModel]) -> bool:
    """Whether the network of `module`, which takes tokens, can be called with rounded weights. It cannot if parts must
    stay in float32, such as a router or the statistics of batch normalization, or if it computes with float32 numbers
    that are not weights and cannot be combined with bfloat16."""
    network, was_training = module.network, module.training
    if network._keep_in_fp32_modules or network._keep_in_fp32_modules_strict:  # noqa: SLF001
        return False
    if any(isinstance(part, _BatchNorm) for part in network.modules()):
        return False
    tokens = torch.ones(1, PROBE_TOKENS, dtype=torch.int64, device=network.device)
    module.eval()
    try:
        with torch.inference_mode():
            answers = _call_rounded(network, input_ids=tokens, attention_mask=torch.ones_like(tokens))
    except (RuntimeError, TypeError, ValueError):
        return False
    finally:
        module.train(was_training)
    finite = answers.logits.isfinite().all()
    return isinstance(finite, FakeTensor) or bool(finite)
