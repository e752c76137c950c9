"""Tokenizes texts with parts that are learned and parts that are not.

A text is tokenized as a whole, and the learned tokens are found by their character offsets: a tokenizer that puts a
space before every text would otherwise put one before every part.
"""

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Tokenizer

from trainjob.errors import DataError
from trainjob.kinds.causal_lm.packing import GIVEN

Pieces = list[tuple[str, bool]]
"""Consecutive parts of a text, each with whether it is learned."""
ANCHORS = ("\n", ".", "x")
"""Prefixes after which a text is tokenized as a continuation."""


@dataclass(frozen=True)
class TokenizedText:
    """A text's tokens."""

    text: str
    ids: list[int]
    spans: list[tuple[int, int]]
    """The characters of each token."""


class PieceTokenizer:
    """A tokenizer, without the tokens that it puts before and after a text. Picklable."""

    def __init__(
        self, tokenizer: Tokenizer, originals: dict[int, int] | None = None, forbidden: Set[int] = frozenset()
    ) -> None:
        self._tokenizer = tokenizer
        self._originals = originals or {}
        """Maps ids to the ids that are returned instead."""
        self._forbidden = forbidden - self._originals.keys()
        """Ids that no text may become."""

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Raises DataError for a text that becomes a forbidden token."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        pairs = zip(texts, encodings, strict=True)
        return [TokenizedText(text, self._allowed(encoding.ids), encoding.offsets) for text, encoding in pairs]

    def codes(self, rows: Sequence[Pieces], whole: Sequence[TokenizedText] | None = None) -> list[list[int]]:
        """The tokens of each row, with GIVEN added to those that are not learned; `whole` are the rows' tokens, where
        they are known.

        The tokens before a learned piece are those of the text before it alone, as when the model is asked: where the
        tokenizer joins characters of both into one token, the pieces are tokenized apart.
        """
        if whole is None:
            whole = self.tokenize(["".join(text for text, _ in pieces) for pieces in rows])
        openings = [self._openings(pieces, tokens) for pieces, tokens in zip(rows, whole, strict=True)]
        texts = list({text for each in openings for text, _ in each})
        alone = dict(zip(texts, (tokens.ids for tokens in self.tokenize(texts)), strict=True))
        found: list[list[int]] = []
        for pieces, tokens, opening in zip(rows, whole, openings, strict=True):
            is_joined = any(alone[text] != ids for text, ids in opening)
            found.append((self._apart(pieces) if is_joined else None) or _codes(pieces, tokens))
        return found

    def _allowed(self, ids: list[int]) -> list[int]:
        if not self._originals:
            return ids
        if forbidden := self._forbidden.intersection(ids):
            token = self._tokenizer.id_to_token(min(forbidden))
            raise DataError(
                f"it contains text that this tokenizer always reads as the control token {token}: remove that text, "
                "or use another tokenizer"
            )
        return [self._originals.get(number, number) for number in ids]

    def _openings(self, pieces: Pieces, tokens: TokenizedText) -> list[tuple[str, list[int]]]:
        """The text before each learned piece, from the last dividing token on, and its tokens in the whole."""
        ends = [end for _, end in tokens.spans]
        found: list[tuple[str, list[int]]] = []
        at = 0
        for text, is_learned in pieces:
            if is_learned and at:
                stop = bisect_right(ends, at)
                first = next((index for index in range(stop - 1, 0, -1) if tokens.ids[index] in self._dividing), 0)
                begin = tokens.spans[first][0] if first else 0
                found.append((tokens.text[begin:at], tokens.ids[first:stop]))
            at += len(text)
        return found

    @cached_property
    def _dividing(self) -> set[int]:
        """Ids of the tokens at which a tokenizer first divides a text."""
        added = self._tokenizer.get_added_tokens_decoder().items()
        return {self._originals.get(number, number) for number, token in added if not token.normalized}

    def _apart(self, pieces: Pieces) -> list[int] | None:
        """The codes of pieces that are tokenized one by one; None if the tokenizer joins them in any case."""
        codes: list[int] = []
        for text, is_learned in pieces:
            ids = self._continued(text) if codes else self.tokenize([text])[0].ids
            if ids is None:
                return None
            codes += [number if is_learned else number | GIVEN for number in ids]
        return codes

    def _continued(self, text: str) -> list[int] | None:
        """The tokens of a text that continues another."""
        for anchor in ANCHORS:
            before, both = self.tokenize([anchor, anchor + text])
            if both.ids[: len(before.ids)] == before.ids:
                return both.ids[len(before.ids) :]
        return None


def _codes(pieces: Pieces, tokens: TokenizedText) -> list[int]:
    """A token is learned if it has a character of a learned piece."""
    is_learned = b"".join(bytes([learned]) * len(text) for text, learned in pieces)
    codes: list[int] = []
    before = 0
    for number, (begin, end) in zip(tokens.ids, tokens.spans, strict=True):
        if begin == end:  # tokenizers may leave blanks out of a token's characters
            begin = min(begin, before)
        codes.append(number if 1 in is_learned[begin : max(end, begin + 1)] else number | GIVEN)
        before = end
    return codes
