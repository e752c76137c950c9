"""Builds encoders of transformers whose mean hidden states represent texts."""

from typing import TYPE_CHECKING, Any, Union

import torch
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModel
from transformers.models.modernbert.modeling_modernbert import ModernBertModel

from trainjob.errors import UserError
from trainjob.kinds.mean_pooling import mean_hidden_states
from trainjob.kinds.scratch_encoder import scratch_config
from trainjob.kinds.text_classifier.network import is_decoder, longest_text
from trainjob.kinds.text_network import PooledEncoder
from trainjob.models.pretrained import check_compatible, load_pretrained
from trainjob.models.pretrained_layers import freeze_unused

if TYPE_CHECKING:
    from trainjob.kinds.inputs.cell_texts import CellTexts
    from trainjob.kinds.inputs.separate_texts import SeparateTexts


def new_encoder(
    spec: PooledEncoder,
    path: str,
    texts: Union["SeparateTexts", "CellTexts"],
    as_stored: bool,
    **settings: Any,
) -> PreTrainedModel:
    """A new encoder, as `models.build` says; `settings` are for one from scratch. `path` is that of `spec` in a
    TrainJob. Raises UserError if the pretrained one is missing or does not fit."""
    if spec.encoder is not None:
        ends = texts.tokenizer.token_to_id("[CLS]"), texts.tokenizer.token_to_id("[SEP]")
        config = scratch_config(
            spec.encoder, texts.vocabulary_size, spec.max_length, texts.pad_token_id, ends, **settings
        )
        return ModernBertModel(config)
    name = str(spec.pretrained)
    network = pretrained_encoder(name, f"{path}.pretrained", as_stored)
    check_compatible(network, path, name, spec.max_length, longest_text(network), texts.vocabulary_size)
    ids = torch.tensor([texts.tokenizer.encode("a").ids])
    if not ids.is_meta:
        freeze_unused(network, mean_hidden_states(network.eval(), ids, torch.ones_like(ids)))
        network.train()
    return network


def pretrained_encoder(name: str, field: str, as_stored: bool) -> PreTrainedModel:
    """Raises UserError, which names `field`, where it cannot be loaded, reads no texts, or has a decoder, whose tokens
    do not see those after them."""
    network, _ = load_pretrained(AutoModel, name, field, "encoder", as_stored)
    kind = network.config.model_type
    if network.input_modalities not in ("text", ("text",)):
        raise UserError(f"{field}: {name} is a model of type {kind}, which does not read texts alone; use an encoder")
    if is_decoder(kind) or network.config.is_encoder_decoder:
        raise UserError(
            f"{field}: {name} is a model of type {kind}, which has a decoder, and the mean of its hidden states says "
            "little about a text; use an encoder, such as BERT"
        )
    return network
