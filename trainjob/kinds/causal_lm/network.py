"""Language models: a transformers decoder on packed rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModelForCausalLM
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from trainjob import api
from trainjob.errors import UserError
from trainjob.kinds.causal_lm import lora, norms
from trainjob.kinds.causal_lm.generation import set_stop_tokens
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.models import gpu_attention, master_weights
from trainjob.models.pretrained import (
    check_compatible,
    load_pretrained,
    load_saved,
    quiet,
    save_network,
    save_network_config,
)
from trainjob.models.pretrained_layers import computing_in_float32, layers_of, recompute_activations
from trainjob.models.trainable import Trainable
from trainjob.pretrained.remote_model import local_folder
from trainjob.storage import Folder

PATH = "spec.model.causalLM"


class CausalLMModule(Trainable[PreTrainedModel]):
    """Predicts the next token at each position of a row."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__(network)
        norms.use_pytorch_norms(network)
        with quiet():
            gpu_attention.use(network)

    def forward(self, input_ids: Tensor, position_ids: Tensor, starts: Tensor | None = None) -> Tensor:
        """Logits [n, length, tokens], in the type in which they are computed, of tokens and their positions, both int64
        [n, length]. A token attends only to tokens since the last position of 0, where its document begins; with a
        cache, transformers would ignore this. `starts`, int32 [n, d], from `packing.document_starts`, marks the same
        documents for faster attention on a GPU."""
        inputs: dict[str, Any] = {"input_ids": input_ids, "position_ids": position_ids, "use_cache": False}
        if starts is not None and gpu_attention.computes_documents(self.network, input_ids.device):
            inputs["cu_seq_lens_q"] = gpu_attention.bounds_of(starts, input_ids.shape[1])
            inputs["attention_mask"] = input_ids.new_zeros(1, 1, 1, 1)  # given 4 dimensions, transformers makes none
        return master_weights.call(self, **inputs).logits

    def round_weights(self) -> None:
        self.rounds = master_weights.can_round(self)

    @property
    def weights(self) -> dict[str, Tensor]:
        return lora.adapter_weights(self.network) if lora.has_adapter(self.network) else super().weights

    def sharding_units(self) -> Iterator[nn.Module]:
        yield from layers_of(self.network)
        yield self

    def recompute_activations(self) -> None:
        recompute_activations(self.network)

    def save(self, folder: Path) -> None:
        """Saves only the adapter, if there is one."""
        if lora.has_adapter(self.network):
            lora.save_config(self.network, folder)
            lora.save_weights(self.network, folder)
        else:
            save_network(self.network, folder)

    def save_config(self, folder: Path) -> None:
        if lora.has_adapter(self.network):
            lora.save_config(self.network, folder)
        else:
            save_network_config(self.network, folder)


def build(spec: api.CausalLM, tokens: TokensInput, as_stored: bool = False) -> CausalLMModule:
    """A new language model, as `models.build` describes. Raises UserError if the pretrained decoder is missing or does
    not fit."""
    network = _from_scratch(spec, tokens) if spec.decoder else _pretrained(spec, tokens, as_stored)
    set_stop_tokens(network, tokens)
    return CausalLMModule(network)


def _from_scratch(spec: api.CausalLM, tokens: TokensInput) -> PreTrainedModel:
    assert spec.decoder is not None
    config = LlamaConfig(
        vocab_size=tokens.vocabulary_size,
        hidden_size=spec.decoder.hidden_size,
        intermediate_size=4 * spec.decoder.hidden_size,
        num_hidden_layers=spec.decoder.layers,
        num_attention_heads=spec.decoder.heads,
        num_key_value_heads=spec.decoder.heads,
        max_position_embeddings=spec.max_length,
        attention_dropout=spec.decoder.dropout,
        tie_word_embeddings=True,
        pad_token_id=tokens.pad_token_id,
        bos_token_id=tokens.begin_token_id,
        eos_token_id=tokens.end_token_id,
    )
    return LlamaForCausalLM(config)


def load(folder: Path, tokens: TokensInput) -> CausalLMModule:
    """The language model that is saved in `folder`. For an adapter, also loads the network that it belongs to, and
    raises UserError if that cannot be loaded."""
    base = lora.base_of(folder)
    network = load_saved(AutoModelForCausalLM, folder) if base is None else _adapted(base, folder)
    set_stop_tokens(network, tokens)
    return CausalLMModule(network)


def _adapted(base: str, folder: Path) -> PreTrainedModel:
    """The network called `base`, with the adapter in `folder`."""
    field = f"{folder}/{lora.ADAPTER}"
    name = base if "://" not in base else str(local_folder(Folder(base), field, weights=True))
    network, _ = load_pretrained(AutoModelForCausalLM, name, field, "decoder")
    lora.restore(network, folder)
    return network


def _pretrained(spec: api.CausalLM, tokens: TokensInput, as_stored: bool) -> PreTrainedModel:
    name = spec.pretrained
    assert name is not None
    network, _ = load_pretrained(AutoModelForCausalLM, name, f"{PATH}.pretrained", "decoder", as_stored)
    limit = getattr(network.config, "max_position_embeddings", None)
    check_compatible(network, PATH, name, spec.max_length, limit, tokens.vocabulary_size)
    if network.device.type != "meta":
        _check_packing(network, name)
    if spec.lora is not None:
        lora.add(network, spec.lora, f"{PATH}.lora")
    return network


PROBE = 8
"""Tokens of each text of the test row."""


@torch.inference_mode()
def _check_packing(network: PreTrainedModel, name: str) -> None:
    """Raises UserError for a decoder whose logits of a text depend on another text before it in the row."""
    model = CausalLMModule(network).eval()
    tokens, positions = torch.arange(2 * PROBE)[None] % network.config.get_text_config().vocab_size, torch.arange(PROBE)
    try:
        with computing_in_float32(network):
            together = model(tokens, positions.repeat(2)[None])[:, PROBE:]
            same = torch.allclose(together, model(tokens[:, PROBE:], positions[None]), rtol=1e-3, atol=1e-3)
    except TypeError:  # it takes no positions
        same = False
    if not same:
        raise UserError(
            f"{PATH}.pretrained: {name} ({network.config.model_type}) attends across texts that are packed into "
            "one row; use a decoder whose attention honors position_ids, such as Llama, Qwen or GPT-NeoX"
        )
