"""RMS norms of transformers' networks are replaced where PyTorch's computes the same, and only there."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.gemma.configuration_gemma import GemmaConfig
from transformers.models.gemma.modeling_gemma import GemmaForCausalLM
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNormGated

from trainjob.kinds.causal_lm import norms

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 64,
    "rms_norm_eps": 1e-3,
}
TOKENS = torch.arange(2, 18).view(2, 8)


def llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**SIZES))


def qwen() -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(**SIZES))


def gemma() -> PreTrainedModel:
    """Multiplies by 1 + weight."""
    return GemmaForCausalLM(GemmaConfig(**SIZES))


def replaced(network: nn.Module) -> int:
    return sum(isinstance(part, nn.RMSNorm) for part in network.modules())


@pytest.mark.parametrize(("make", "count"), [(llama, 2 * 2 + 1), (qwen, 2 * 4 + 1), (gemma, 0)])
def test_answers_and_gradients_stay(make: Callable[[], PreTrainedModel], count: int):
    torch.manual_seed(0)
    network = make()
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    names, found = [name for name, _ in network.named_parameters()], []
    for turn in range(2):
        if turn == 1:
            state = torch.get_rng_state()
            norms.use_pytorch_norms(network)
            assert torch.equal(torch.get_rng_state(), state)
        network.zero_grad()
        logits = network(input_ids=TOKENS).logits
        logits.square().mean().backward()
        found.append([logits.detach(), *(weight.grad for weight in network.parameters())])
    assert replaced(network) == count
    assert [name for name, _ in network.named_parameters()] == names
    for before, after in zip(*found, strict=True):
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-6)


def test_weights_without_numbers_yet_are_those_of_the_new_norm():
    with torch.device("meta"):
        network = llama()
    norms.use_pytorch_norms(network)
    assert replaced(network) == 5
    assert all(weight.is_meta for weight in network.parameters())


def test_a_norm_with_a_gate_stays():
    network = nn.Sequential(Qwen3NextRMSNormGated(8))
    norms.use_pytorch_norms(network)
    assert replaced(network) == 0
