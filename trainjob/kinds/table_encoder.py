"""The encoder of a table's texts: a network of transformers without a head."""

from pathlib import Path

import torch
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModel

from trainjob.kinds.inputs.cell_texts import CellTexts
from trainjob.kinds.pooled_encoder import new_encoder
from trainjob.kinds.table_network import TableNetwork
from trainjob.models import gpu_attention
from trainjob.models.pretrained import quiet, refuse_code, save_network_config

CONFIG = "text_encoder"
"""The folder, within that of a model, with the encoder's config.json; model.safetensors has its weights, too."""


def build_encoder(model: TableNetwork, dropout: float, texts: CellTexts, as_stored: bool) -> PreTrainedModel:
    """A new encoder, as `models.build` says. Raises UserError if the pretrained one is missing or does not fit."""
    return _attending(new_encoder(model.text_encoder, model.text_path, texts, as_stored, embedding_dropout=dropout))


def load_encoder(folder: Path) -> PreTrainedModel:
    """The encoder of the model that is saved in `folder`, without its weights."""
    part = folder / CONFIG
    refuse_code(str(part), str(part), cached_only=True)
    with quiet():
        config = AutoConfig.from_pretrained(part, trust_remote_code=False, local_files_only=True)
        return _attending(AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False))


def save_encoder_config(network: PreTrainedModel, folder: Path) -> None:
    save_network_config(network, folder / CONFIG)


def _attending(network: PreTrainedModel) -> PreTrainedModel:
    with quiet():
        gpu_attention.use(network)
    return network
