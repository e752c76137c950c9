"""The tokens at which a language model stops."""

import json
from dataclasses import replace

import pyarrow as pa

from trainjob.errors import DataError, notify
from trainjob.kinds.causal_lm.packing import GIVEN
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.kinds.inputs.token_codes import MAX_TOKENS

_PROBE = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
_ROOM = 1 << 20
"""Tokens that the rendered probe may have; a template may write a long system message."""


def end_token_ids(tokens: TokensInput) -> list[int]:
    """The token that ends texts, and, if the model learns messages, the one that ends the assistant's turns."""
    turn_end = turn_end_id(tokens)
    return list(dict.fromkeys([tokens.end_token_id, *([] if turn_end is None else [turn_end])]))


def turn_end_id(tokens: TokensInput) -> int | None:
    """The first control token that the chat template writes after an answer's content. None where it writes none,
    refuses a conversation of one question and one answer, or the model learns no messages."""
    if tokens.form != "messages":
        return None
    table = pa.table({tokens.columns[0]: [json.dumps(_PROBE)]})
    try:
        rows = replace(tokens, max_length=_ROOM, token_type="int32").transform(table).to_pylist()
    except DataError:
        return None
    tokenizer, end = tokens.tokenizer, None
    control = tokenizer.get_added_tokens_decoder()
    for code in reversed(rows[0] if rows else []):
        token = code & (MAX_TOKENS - 1)
        if code & GIVEN:
            break
        if token in control:
            end = token
        elif tokenizer.decode([token], skip_special_tokens=False).strip():
            break
    return end


def note_missing_turn_end(tokens: TokensInput, field: str) -> None:
    """Gives a Notice where the chat template ends the assistant's turns with no token; `field` names the model."""
    if tokens.form == "messages" and turn_end_id(tokens) is None:
        notify(
            f"{field}: the chat template writes no special token after an answer, so the model does not learn where an "
            "answer ends. Put eos_token there in a copy of the template, or stop answers with --stop"
        )
