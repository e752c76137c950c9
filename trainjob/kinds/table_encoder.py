"""The encoder of a table's texts: a network of transformers without a head."""

from pathlib import Path

import torch
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModel
from transformers.models.modernbert.modeling_modernbert import ModernBertModel

from trainjob.errors import UserError
from trainjob.kinds.inputs.cell_texts import CellTexts
from trainjob.kinds.scratch_encoder import scratch_config
from trainjob.kinds.table_network import TableNetwork
from trainjob.kinds.text_classifier.network import is_decoder, longest_text
from trainjob.models import gpu_attention
from trainjob.models.pretrained import check_compatible, load_pretrained, quiet, refuse_code
from trainjob.models.pretrained_layers import freeze_unused

CONFIG = "text_encoder"
"""The folder, within that of a model, with the encoder's config.json; model.safetensors has its weights, too."""


def build_encoder(model: TableNetwork, dropout: float, texts: CellTexts, as_stored: bool) -> PreTrainedModel:
    """A new encoder, as `models.build` says. Raises UserError if the pretrained one is missing or does not fit."""
    spec = model.text_encoder
    if spec.encoder is not None:
        first, last = (texts.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        config = scratch_config(
            spec.encoder,
            texts.vocabulary_size,
            spec.max_length,
            texts.pad_token_id,
            (first, last),
            embedding_dropout=dropout,
        )
        return _attending(ModernBertModel(config))
    name, field = str(spec.pretrained), f"{model.text_path}.pretrained"
    network, _ = load_pretrained(AutoModel, name, field, "encoder", as_stored)
    if is_decoder(network.config.model_type):
        raise UserError(
            f"{field}: {name} is a decoder, and the mean of its hidden states says little about a text; use an encoder"
        )
    check_compatible(network, model.text_path, name, spec.max_length, longest_text(network), texts.vocabulary_size)
    ids = torch.tensor([texts.tokenizer.encode("a").ids])
    if not ids.is_meta:
        freeze_unused(network, network.eval()(ids, torch.ones_like(ids)).last_hidden_state)
        network.train()
    return _attending(network)


def load_encoder(folder: Path) -> PreTrainedModel:
    """The encoder of the model that is saved in `folder`, without its weights."""
    part = folder / CONFIG
    refuse_code(str(part), str(part), cached_only=True)
    with quiet():
        config = AutoConfig.from_pretrained(part, trust_remote_code=False, local_files_only=True)
        return _attending(AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False))


def save_encoder_config(network: PreTrainedModel, folder: Path) -> None:
    network.config.dtype = "float32"
    network.config.architectures = [type(network).__name__]
    network.config.save_pretrained(folder / CONFIG)


def _attending(network: PreTrainedModel) -> PreTrainedModel:
    with quiet():
        gpu_attention.use(network)
    return network
