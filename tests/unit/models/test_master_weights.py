"""Weights that are rounded at once for a pass give what float32 gives, but for the rounding."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertForSequenceClassification
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.modernbert.configuration_modernbert import ModernBertConfig
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification

from trainjob.kinds.causal_lm.network import CausalLMModule
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.models import Trainable, master_weights

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
TOKENS = torch.arange(2, 18).view(2, 8)


def text() -> TextModule:
    torch.manual_seed(0)
    config = BertConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return TextModule(BertForSequenceClassification(config))


def modern_text() -> TextModule:
    torch.manual_seed(0)
    ends = {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
    config = ModernBertConfig(**SIZES, **ends, classifier_pooling="mean")
    return TextModule(ModernBertForSequenceClassification(config))


def language() -> CausalLMModule:
    torch.manual_seed(0)
    return CausalLMModule(LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)))


INPUTS: dict[Callable[..., Any], dict[str, Tensor]] = {
    text: {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS)},
    modern_text: {"input_ids": TOKENS},
    language: {"input_ids": TOKENS, "position_ids": torch.arange(8).expand(2, 8)},
}


def passes(module: Trainable[Any], inputs: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    module.zero_grad()
    answers = module(**inputs).float()
    answers.square().mean().backward()
    return answers.detach(), {name: each.grad for name, each in module.named_parameters() if each.grad is not None}


def difference(one: Tensor, other: Tensor) -> float:
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("make", INPUTS)
def test_answers_and_gradients_are_those_of_float32_but_for_the_rounding(make: Callable[[], Trainable[Any]]):
    module = make()
    exact, exact_gradients = passes(module, INPUTS[make])
    module.round_weights()
    assert module.rounds
    assert module.training
    answers, gradients = passes(module, INPUTS[make])
    assert 0 < difference(answers, exact) < 0.02
    assert gradients.keys() == exact_gradients.keys() == {name for name, _ in module.named_parameters()}
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        if exact_gradients[name].norm() > 1e-6:  # that of a key's bias is 0 but for the rounding
            assert difference(gradient, exact_gradients[name]) < 0.1, name
    assert all(weight.dtype == torch.float32 for weight in module.state_dict().values() if weight.is_floating_point())


class Table(nn.Module):
    """Numbers that are no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(32, 2))

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden @ self.table


def keep_a_part(network: PreTrainedModel) -> None:
    network._keep_in_fp32_modules = {"classifier"}  # noqa: SLF001


def normalize_batches(network: PreTrainedModel) -> None:
    network.add_module("statistics", nn.BatchNorm1d(2))


def multiply_by_a_table(network: PreTrainedModel) -> None:
    network.set_submodule("classifier", Table())


@pytest.mark.parametrize("change", [keep_a_part, normalize_batches, multiply_by_a_table])
def test_networks_that_cannot_be_rounded_are_left_to_autocast(change: Callable[[PreTrainedModel], None]):
    module = text()
    change(module.network)
    module.round_weights()
    assert not module.rounds
    assert module.training
    assert passes(module, INPUTS[text])[0].isfinite().all()


def test_what_is_not_finite_in_16_bits_is_left_to_autocast():
    module = text()
    with torch.no_grad():
        module.network.get_parameter("classifier.bias").fill_(torch.finfo(torch.float32).max)
    assert not master_weights.can_round(module)
