"""Vectors of texts from the hidden states of an encoder."""

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel


def mean_hidden_states(encoder: "PreTrainedModel", ids: Tensor, mask: Tensor) -> Tensor:
    """The mean of each text's last hidden states, float32 [n, d], of tokens and their masks, both int64 [n, length]."""
    hidden = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    weights = mask.unsqueeze(2).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
