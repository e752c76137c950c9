"""Attention for GPUs, as far as a CPU can compute it; benchmarks/gpu.py checks the rest."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertForSequenceClassification
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.mistral.configuration_mistral import MistralConfig
from transformers.models.mistral.modeling_mistral import MistralForCausalLM
from transformers.models.modernbert.configuration_modernbert import ModernBertConfig
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification

from trainjob.models import gpu_attention

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
NETWORKS = {
    "bert": lambda: BertForSequenceClassification(BertConfig(**SIZES)),
    "modernbert": lambda: ModernBertForSequenceClassification(
        ModernBertConfig(**SIZES, local_attention=8, pad_token_id=0, cls_token_id=1, sep_token_id=2)
    ),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=1)),
}


def test_documents_are_counted_over_all_rows():
    starts = torch.tensor([[0, 3, 6], [0, 5, 8]], dtype=torch.int32)
    bounds = gpu_attention.bounds_of(starts, 8)
    assert bounds.tolist() == [0, 3, 6, 8, 13, 16, 16]
    assert bounds.dtype == torch.int32


@pytest.mark.parametrize("window", [None, 3])
def test_documents_that_the_kernel_cannot_compute_are_kept_apart_by_a_mask(window: int | None):
    """The mask equals the one that transformers derives from positions."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = SIZES | {"num_key_value_heads": 1}
    network: PreTrainedModel = (
        LlamaForCausalLM(LlamaConfig(**sizes))
        if window is None
        else MistralForCausalLM(MistralConfig(**sizes, sliding_window=window))
    ).eval()
    tokens = torch.randint(3, 50, (2, 8))
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2, 3, 4, 0, 1, 2]])
    bounds = gpu_attention.bounds_of(torch.tensor([[0, 3, 6], [0, 5, 8]], dtype=torch.int32), 8)

    def answers(name: str, **options: Tensor) -> Tensor:
        network.set_attn_implementation(name)
        with torch.inference_mode():
            return network(input_ids=tokens, position_ids=positions, use_cache=False, **options).logits

    placeholder = torch.zeros(1, 1, 1, 1)
    found = answers(gpu_attention.NAME, cu_seq_lens_q=bounds, attention_mask=placeholder)
    torch.testing.assert_close(found, answers("sdpa"), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("lengths", [None, (12, 12), (12, 5)], ids=["no mask", "full", "padded"])
def test_it_answers_as_pytorchs_attention(kind: str, lengths: tuple[int, int] | None):
    torch.manual_seed(0)
    network: PreTrainedModel = NETWORKS[kind]().eval()
    tokens = torch.randint(3, 50, (2, 12))
    mask = None if lengths is None else (torch.arange(12) < torch.tensor(lengths)[:, None]).long()

    def answers(name: str) -> Tensor:
        network.set_attn_implementation(name)
        with torch.inference_mode():
            found = network(input_ids=tokens, attention_mask=mask).logits
        return found if found.dim() == 2 or mask is None else found[mask.bool()]

    torch.testing.assert_close(answers(gpu_attention.NAME), answers("sdpa"), rtol=0, atol=1e-5)


def test_nobody_looks_whether_a_mask_hides_anything():
    """PyTorch's would leave this one out."""
    full: dict[str, Any] = {"attention_mask": torch.ones(2, 12, dtype=torch.bool), "allow_is_bidirectional_skip": True}
    options: dict[str, Any] = {"batch_size": 2, "q_length": 12, "kv_length": 12, "allow_is_causal_skip": False}
    assert gpu_attention.mask(**options, **full) is not None
    assert gpu_attention.mask(**options, **full | {"attention_mask": None}) is None
