"""How prepared rows store tokens.

A code is a token's number with flags above it, int32: of a pair the number of the text, of a language model whether the
token begins a document and whether it is given. Where the vocabulary leaves room for the flags in 16 bits, a row stores
each code in 16, and only a batch has 32. Otherwise it stores the code itself.
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from tokenizers import Tokenizer

from trainjob.errors import DataError

TokenType = Literal["uint16", "int32"]
"""The type in which rows store codes."""

FLAG_BIT = 24
"""The lowest bit of a code's flags."""
MAX_TOKENS = 1 << FLAG_BIT
_NARROW_BITS = 16


def token_type_of(tokenizer: Tokenizer, flag_bits: int) -> TokenType:
    """The type for the codes of a tokenizer."""
    return "uint16" if largest_token(tokenizer).bit_length() + flag_bits <= _NARROW_BITS else "int32"


def largest_token(tokenizer: Tokenizer) -> int:
    """The largest number of a token. It may be larger than the number of tokens."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0)


def codes_of(tokens: Iterable[int]) -> np.ndarray:
    """The codes of tokens without flags, int32 [t]. Raises DataError for a token that leaves no room for flags."""
    found = np.fromiter(tokens, np.uint32)
    _check(found, MAX_TOKENS)
    return found.astype(np.int32)


def stored(codes: np.ndarray, token_type: TokenType, flag_bits: int) -> np.ndarray:
    """Codes, int32 [t], as a row stores them. Raises DataError for a token that the tokenizer's vocabulary lacks and
    that does not fit."""
    if token_type == "int32":
        return codes
    tokens, flags, shift = codes & (MAX_TOKENS - 1), codes >> FLAG_BIT, _NARROW_BITS - flag_bits
    _check(tokens, 1 << shift)
    assert not (flags >> flag_bits).any()
    return (tokens | flags << shift).astype(np.uint16)


def read_codes(values: np.ndarray, flag_bits: int) -> np.ndarray:
    """The codes, int32 [t], that `stored` has stored."""
    if values.dtype != np.uint16:
        return values
    codes, shift = values.astype(np.int32), _NARROW_BITS - flag_bits
    return codes & ((1 << shift) - 1) | codes >> shift << FLAG_BIT


def _check(tokens: np.ndarray, most: int) -> None:
    largest = int(tokens.max(initial=0))
    if largest >= most:
        raise DataError(
            f"the tokenizer makes the token {largest:,}, and the largest number in its vocabulary is below {most:,}: "
            "its tokenizer.json is damaged (as a rule in post_processor)"
        )
