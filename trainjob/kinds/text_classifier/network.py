"""Networks that answer a text: a transformers encoder, or a decoder, with a classification head."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification

from trainjob import api
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.scratch_encoder import scratch_config
from trainjob.models import master_weights
from trainjob.models.pretrained import (
    PretrainedClassifier,
    check_compatible,
    load_pretrained,
    load_saved,
    quiet,
    refuse_code,
)
from trainjob.models.pretrained_layers import freeze_unused, head_of, set_dropout

PRUNED = "trainjob_pruned"
"""The field of a pruned network's config.json that maps the name of each smaller linear layer to its number of inputs
and outputs."""

_POOLS_LAST_TOKEN = ("xlnet",)
"""Types of networks that classify by the last token of a row even if it is padding. Their positions are relative, so
padding may also come first."""


class TextModule(PretrainedClassifier):
    """A transformers encoder with a classification head."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Logits, float32 [n, C]. The arguments are int64 [n, length]: the mask is 0 for padding, and `token_type_ids`
        are 0 or 1 for tokens of the first or second text of a pair."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        if attention_mask is not None and self.network.config.model_type in _POOLS_LAST_TOKEN:
            order = _padding_first(attention_mask)
            input_ids, attention_mask = input_ids.gather(1, order), attention_mask.gather(1, order)
            types = {name: tensor.gather(1, order) for name, tensor in types.items()}
        return master_weights.call(self, input_ids=input_ids, attention_mask=attention_mask, **types).logits.float()

    def round_weights(self) -> None:
        self.rounds = master_weights.can_round(self)


def _padding_first(attention_mask: Tensor) -> Tensor:
    """The positions of tokens in the order that moves the padding before them; both int64 [n, length]."""
    length = attention_mask.shape[1]
    positions = torch.arange(length, device=attention_mask.device) + attention_mask.sum(1, keepdim=True)
    return positions % length


def build(spec: api.TextNetwork, texts: TextInput, head: Mapping[str, Any], as_stored: bool = False) -> TextModule:
    """A new network whose head has the settings `head` of config.json, as `models.build` says. Raises UserError if the
    pretrained encoder is missing or does not fit."""
    if spec.encoder is None:
        classifier = TextModule(_pretrained(spec, texts, head, as_stored), spec.freeze_encoder)
        tokens = torch.tensor([texts.tokenizer.encode("a").ids])
        mask = None if tokens.is_meta else torch.ones_like(tokens)  # networks read the values of a mask
        freeze_unused(classifier, classifier.eval()(tokens, mask))
        classifier.train()
        return classifier
    first, last = (texts.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    config = scratch_config(
        spec.encoder,
        texts.vocabulary_size,
        spec.max_length,
        texts.pad_token_id,
        (first, last),
        classifier_pooling="mean",
        embedding_dropout=spec.dropout,
        classifier_dropout=spec.dropout,
        **head,
    )
    return TextModule(ModernBertForSequenceClassification(config))


def load(folder: Path) -> TextModule:
    """The text classifier that is saved in `folder`."""
    from transformers.models.auto.configuration_auto import AutoConfig
    from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification

    refuse_code(str(folder), str(folder), cached_only=True)
    with quiet():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        if pruned := getattr(config, PRUNED, None):
            network = AutoModelForSequenceClassification.from_config(
                config, dtype=torch.float32, trust_remote_code=False
            )
            _shrink(network, pruned)
            network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
            return TextModule(network)
    return TextModule(load_saved(AutoModelForSequenceClassification, folder))


def _shrink(network: PreTrainedModel, pruned: Any) -> None:
    """Replaces the linear layers in `pruned` by new ones of its sizes. Raises ValueError if it is not of this form."""
    try:
        for name, shape in pruned.items():
            set_linear(network, name, *shape)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"config.json: {PRUNED}: {error}") from error


def set_linear(network: PreTrainedModel, name: str, inputs: int, outputs: int) -> nn.Linear:
    """Replaces the layer `name` by a new linear layer of another size, and returns it. The encoder has as many heads
    and channels as its linear layers have room for."""
    old = network.get_submodule(name)
    if not isinstance(old, nn.Linear):
        raise TypeError(f"{name} is not a linear layer")
    layer = nn.Linear(inputs, outputs, bias="bias" in dict(old.named_parameters()))
    network.set_submodule(name, layer)
    return layer


def _pretrained(spec: api.TextNetwork, texts: TextInput, head: Mapping[str, Any], as_stored: bool) -> PreTrainedModel:
    """The pretrained encoder with a new head; a head for other classes in the checkpoint is not used."""
    from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification

    name = spec.pretrained
    assert name is not None
    network, _ = load_pretrained(
        AutoModelForSequenceClassification,
        name,
        f"{spec.path}.pretrained",
        "encoder",
        as_stored,
        ignore_mismatched_sizes=True,
        **head,
    )
    check_compatible(network, spec.path, name, spec.max_length, longest_text(network), texts.vocabulary_size)
    if is_decoder(network.config.model_type):
        _set_up_decoder(network, texts.pad_token_id)
    set_dropout(head_of(network), spec.dropout)
    return network


def is_decoder(model_type: str) -> bool:
    """Whether networks of this type predict next tokens, not masked ones."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    return model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def _set_up_decoder(network: PreTrainedModel, pad_token_id: int) -> None:
    """Sets the padding token, as a decoder classifies by the last token of a text that is not padding, and turns off
    the cache of keys and values, as nothing is generated."""
    for config in {id(each): each for each in (network.config, network.config.get_text_config())}.values():
        config.pad_token_id, config.use_cache = pad_token_id, False


def longest_text(network: PreTrainedModel) -> int | None:
    """The number of positions of the encoder; RoBERTa and similar models count them from `padding_idx` + 1."""
    limit = getattr(network.config, "max_position_embeddings", None)
    if limit == -1:  # XLNet has no limit
        return None
    table = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return limit if limit is None or padding is None else limit - padding - 1
