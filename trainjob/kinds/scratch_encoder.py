"""The configuration of an encoder that is trained from scratch, for every kind that answers a text with one."""

from typing import Any

from transformers.models.modernbert.configuration_modernbert import ModernBertConfig

from trainjob.kinds.text_network import Encoder


def scratch_config(
    encoder: Encoder,
    vocabulary: int,
    max_length: int,
    padding: int,
    ends: tuple[int | None, int | None],
    **settings: Any,
) -> ModernBertConfig:
    """The configuration of a network on `encoder`, for a `vocabulary` of this many tokens.

    `padding` is the token that pads texts, and `ends` are those before and after each text.
    """
    before, after = ends
    return ModernBertConfig(
        vocab_size=vocabulary,
        hidden_size=encoder.hidden_size,
        num_hidden_layers=encoder.layers,
        num_attention_heads=encoder.heads,
        intermediate_size=2 * encoder.hidden_size,
        max_position_embeddings=max_length,
        pad_token_id=padding,
        cls_token_id=before,
        bos_token_id=before,
        sep_token_id=after,
        eos_token_id=after,
        **settings,
    )
