"""The network: a transformers encoder with a head for each token, which reads long texts in overlapping windows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel
from transformers.models.modernbert.modeling_modernbert import ModernBertForTokenClassification

from trainjob.kinds.scratch_encoder import scratch_config
from trainjob.kinds.text_classifier.network import longest_text
from trainjob.kinds.token_classifier.input import SpanInput
from trainjob.kinds.token_classifier.spec import TokenClassifier
from trainjob.kinds.token_classifier.tags import tag_names
from trainjob.models import master_weights
from trainjob.models.pretrained import PretrainedClassifier, check_compatible, load_pretrained, load_saved
from trainjob.models.pretrained_layers import freeze_unused, head_of, set_dropout


class TokenClassifierModule(PretrainedClassifier):
    """Answers each token from the window in whose middle it lies."""

    def __init__(self, network: PreTrainedModel, texts: SpanInput, freeze_encoder: bool = False) -> None:
        super().__init__(network, freeze_encoder)
        self._before, self._after = texts.ends
        self._pad = texts.pad_token_id
        self._room = texts.max_length - len(self._before) - len(self._after)
        """Tokens of the text in a window."""

    def forward(self, tokens: Tensor, mask: Tensor, offsets: Tensor, spans: Tensor | None = None) -> Tensor:
        """The logits of each tag and, after them, the token's start and end, float32 [n, length, tags + 2], of tokens
        and their mask, both int64 [n, length], and `offsets`, int64 [n, length, 2], which are 0 where there is no
        token. `spans`, the true ones, are not looked at."""
        rows, length = tokens.shape
        overlap = self._room // 2
        stride, width = self._room - overlap, min(length, self._room)
        starts = torch.arange(0, 1 + max(length - self._room, 0) + stride - 1, stride, device=tokens.device)
        positions = starts[:, None] + torch.arange(width, device=tokens.device)
        is_token = (positions < mask.sum(1)[:, None, None]).flatten(0, 1)
        windows = tokens[:, positions.clamp(max=length - 1)].flatten(0, 1)
        logits = self._window_logits(windows, is_token).unflatten(0, (rows, len(starts)))
        last = (mask.sum(1) - self._room).clamp(min=0).add(stride - 1).div(stride, rounding_mode="floor")
        position = torch.arange(length, device=tokens.device)
        window = (position - overlap // 2).clamp(min=0).div(stride, rounding_mode="floor").minimum(last[:, None])
        row = torch.arange(rows, device=tokens.device)[:, None]
        logits_of_tokens = logits[row, window, (position - window * stride).clamp(max=width - 1)]
        return torch.cat([logits_of_tokens, offsets.float()], dim=2)

    def _window_logits(self, tokens: Tensor, is_token: Tensor) -> Tensor:
        """float32 [windows, width, tags], of tokens int64 [windows, width], between the special tokens."""
        sizes, begin = is_token.sum(1), len(self._before)
        ids = tokens.new_full((len(tokens), tokens.shape[1] + begin + len(self._after)), self._pad)
        ids[:, :begin] = tokens.new_tensor(self._before)
        ids[:, begin : begin + tokens.shape[1]] = torch.where(is_token, tokens, self._pad)
        windows = torch.arange(len(tokens), device=tokens.device)
        for number, token in enumerate(self._after):
            ids[windows, begin + sizes + number] = token
        positions = torch.arange(ids.shape[1], device=tokens.device)
        attention = (positions < (begin + sizes + len(self._after))[:, None]).long()
        logits = master_weights.call(self, input_ids=ids, attention_mask=attention).logits.float()
        return logits[:, begin : begin + tokens.shape[1]]

    def round_weights(self) -> None:
        self.rounds = master_weights.can_round(self)


def build(spec: TokenClassifier, texts: SpanInput, types: Sequence[str], as_stored: bool) -> TokenClassifierModule:
    """A new network, as `models.build` says. Raises UserError if the pretrained encoder is missing or does not fit."""
    tags = tag_names(types)
    head = {"id2label": dict(enumerate(tags)), "label2id": {name: number for number, name in enumerate(tags)}}
    if spec.encoder is None:
        network = _pretrained(spec, texts, head, as_stored)
        classifier = TokenClassifierModule(network, texts, spec.freeze_encoder)
        tokens = torch.tensor([texts.tokenizer.encode("a", add_special_tokens=False).ids])
        offsets = torch.zeros((*tokens.shape, 2), dtype=torch.long)
        if not next(network.parameters()).is_meta:
            freeze_unused(classifier, classifier.eval()(tokens, torch.ones_like(tokens), offsets))
        classifier.train()
        return classifier
    before, after = texts.ends
    config = scratch_config(
        spec.encoder,
        texts.vocabulary_size,
        spec.max_length,
        texts.pad_token_id,
        (before[0], after[0]),
        embedding_dropout=spec.dropout,
        classifier_dropout=spec.dropout,
        **head,
    )
    return TokenClassifierModule(ModernBertForTokenClassification(config), texts)


def load(folder: Path, texts: SpanInput) -> TokenClassifierModule:
    """The token classifier that is saved in `folder`."""
    from transformers.models.auto.modeling_auto import AutoModelForTokenClassification

    return TokenClassifierModule(load_saved(AutoModelForTokenClassification, folder), texts)


def _pretrained(spec: TokenClassifier, texts: SpanInput, head: Mapping[str, Any], as_stored: bool) -> PreTrainedModel:
    from transformers.models.auto.modeling_auto import AutoModelForTokenClassification

    name = spec.pretrained
    assert name is not None
    field = f"{spec.path}.pretrained"
    network, _ = load_pretrained(
        AutoModelForTokenClassification, name, field, "encoder", as_stored, ignore_mismatched_sizes=True, **head
    )
    check_compatible(network, spec.path, name, spec.max_length, longest_text(network), texts.vocabulary_size)
    set_dropout(head_of(network), spec.dropout)
    return network
