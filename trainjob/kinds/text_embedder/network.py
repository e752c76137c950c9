"""Networks that embed texts: a transformers encoder with mean pooling, also in the format of sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModel

from trainjob import api
from trainjob.kinds.inputs.separate_texts import SeparateTexts
from trainjob.kinds.mean_pooling import mean_hidden_states
from trainjob.kinds.pooled_encoder import new_encoder
from trainjob.models import gpu_attention
from trainjob.models.pretrained import load_saved, quiet, save_network, save_network_config
from trainjob.models.trainable import Trainable

_MODULES = ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")
"""Folders and classes of the modules of sentence-transformers."""


class EmbedderModule(Trainable[PreTrainedModel]):
    """The means of a text's last hidden states, scaled to length 1."""

    def __init__(self, network: PreTrainedModel, max_length: int) -> None:
        super().__init__(network)
        self._max_length = max_length
        with quiet():
            gpu_attention.use(network)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        pair_ids: Tensor | None = None,
        pair_mask: Tensor | None = None,
        negative_ids: Tensor | None = None,
        negative_mask: Tensor | None = None,
    ) -> Tensor:
        """Computes vectors from tokens and their masks, int64 [n, length]: float32 [n, d] for texts, [n, 2, d] for
        pairs of texts, and [n, 3, d] for triplets."""
        vectors = self._vectors(ids, mask)
        others = ((pair_ids, pair_mask), (negative_ids, negative_mask))
        found = [self._vectors(ids, mask) for ids, mask in others if ids is not None and mask is not None]
        return torch.stack([vectors, *found], dim=1) if found else vectors

    def _vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        return functional.normalize(mean_hidden_states(self.network, ids, mask), dim=1)

    def use_plain_attention(self) -> None:
        with quiet():
            self.network.set_attn_implementation("eager")

    def save(self, folder: Path) -> None:
        save_network(self.network, folder)
        self._save_modules(folder)

    def save_config(self, folder: Path) -> None:
        save_network_config(self.network, folder)
        self._save_modules(folder)

    def _save_modules(self, folder: Path) -> None:
        """The files by which sentence-transformers computes the same vectors."""
        pooling = {
            "word_embedding_dimension": self.network.config.get_text_config().hidden_size,
            "pooling_mode_mean_tokens": True,
        }
        modules = [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
            for index, (path, name) in enumerate(_MODULES)
        ]
        files: dict[str, Any] = {
            "modules.json": modules,
            "sentence_bert_config.json": {"max_seq_length": self._max_length, "do_lower_case": False},
            "config_sentence_transformers.json": {"similarity_fn_name": "cosine"},
            "1_Pooling/config.json": pooling,
            "2_Normalize/config.json": {},
        }
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content, indent=1))


def build(spec: api.TextEmbedder, texts: SeparateTexts, as_stored: bool = False) -> EmbedderModule:
    """A new network, as `models.build` says. Raises UserError if the pretrained encoder is missing or does not fit."""
    return EmbedderModule(new_encoder(spec, spec.path, texts, as_stored), spec.max_length)


def load(folder: Path, texts: SeparateTexts) -> EmbedderModule:
    """The embedder that is saved in `folder`."""
    return EmbedderModule(load_saved(AutoModel, folder), texts.max_length)
