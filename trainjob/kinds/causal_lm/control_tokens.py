"""Control tokens, such as those that begin and end a turn, and contents that are spelled like them.

A tokenizer reads the text `<|im_end|>` as the token wherever it occurs. So such texts in a conversation are put between
marks before the chat template is rendered, and what is between marks is tokenized like any other text.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from trainjob.errors import DataError, RowError
from trainjob.kinds.causal_lm.packing import GIVEN
from trainjob.kinds.causal_lm.piece_tokenizer import Pieces, PieceTokenizer, TokenizedText

OPEN, CLOSE = "90731846250219735081", "90731846250219735082"
"""The marks. Templates may escape other characters than digits, or change their case."""
THOUGHTS = frozenset({"<think>", "</think>"})
"""Tokens that the assistant's content may contain: data sets for reasoning models have the thoughts there."""
SPOKEN = ("content", "reasoning_content", "reasoning", "thinking")
_NO_CHARACTER = "\U0010ffff"
_MARK = re.compile(f"{OPEN}|{CLOSE}")
_WORDS = re.compile(r"[\s\w.,'-]+")
_HTML = re.compile(r"</?[a-z]+[1-6]?>")


class ControlTokens:
    """The control tokens of a tokenizer: the special ones, and added ones that are neither words, white space nor HTML
    tags; an HTML tag counts if the chat template contains it. Picklable."""

    def __init__(self, tokenizer: Tokenizer, template: str) -> None:
        self._tokenizer = tokenizer
        self._names = {
            number: token.content
            for number, token in tokenizer.get_added_tokens_decoder().items()
            if token.content.strip() and (token.special or _is_control(token.content, template))
        }
        self._aliases = {name: f"{OPEN}{number}{CLOSE}" for number, name in self._names.items()}
        self._unknown = {token.id for token in tokenizer.model.tokenize(_NO_CHARACTER)}
        self._any = _pattern_of(self._aliases)
        self._any_but_thoughts = _pattern_of(self._aliases.keys() - THOUGHTS)
        self._any_or_mark = re.compile(f"{OPEN}({self._any.pattern}){CLOSE}|{_MARK.pattern}|({self._any.pattern})")

    def marked(self, value: Any) -> Any:
        """A JSON value with marks around each text in it, keys of objects included, that is spelled like a token."""
        return _each_text(value, lambda text: _with_marks(text, self._any))

    def marked_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """Marks a message in the same way, except for THOUGHTS in the assistant's own texts."""
        if message.get("role") != "assistant":
            return self.marked(message)
        spoken = {name: value for name, value in message.items() if name in SPOKEN}
        return self.marked(message) | _each_text(spoken, lambda text: _with_marks(text, self._any_but_thoughts))

    def found(self, text: str) -> str | None:
        """The first text that is spelled like a control token, except THOUGHTS."""
        match = self._any_but_thoughts.search(text)
        return match and match[0]

    def ids(self, texts: Sequence[str], where: Callable[[int], str]) -> list[list[int]]:
        """The tokens of rendered conversations. Raises DataError as `codes` does."""
        return [[code & ~GIVEN for code in row] for row in self.codes([[(text, False)] for text in texts], where)]

    def codes(self, rows: Sequence[Pieces], where: Callable[[int], str]) -> list[list[int]]:
        """The tokens of rendered conversations, with GIVEN added to those that are not learned.

        Raises DataError, which names the row, where the tokenizer reads some content as a control token in any case.
        """
        whole = self._plain.tokenize(["".join(text for text, _ in pieces) for pieces in rows])
        is_plain = [_MARK.search(tokens.text) is None and self._are_spelled(tokens) for tokens in whole]
        plain = iter(
            self._plain.codes(
                [pieces for pieces, is_it in zip(rows, is_plain, strict=True) if is_it],
                [tokens for tokens, is_it in zip(whole, is_plain, strict=True) if is_it],
            )
        )
        return [
            next(plain) if has_one_piece else self._codes_apart(pieces, where(row))
            for row, (pieces, has_one_piece) in enumerate(zip(rows, is_plain, strict=True))
        ]

    def _are_spelled(self, tokens: TokenizedText) -> bool:
        """Whether the text spells each control token exactly, not in characters that are normalized to it, such
        as capitals or full-width brackets."""
        return all(
            tokens.text[begin:end].strip() == self._names[number].strip()
            for number, (begin, end) in zip(tokens.ids, tokens.spans, strict=True)
            if number in self._names and number not in self._unknown
        )

    def _codes_apart(self, pieces: Pieces, where: str) -> list[int]:
        try:
            (codes,) = self._apart.codes([[(self._with_aliases(text), is_learned) for text, is_learned in pieces]])
        except DataError as error:
            kind = "the tokenizer reads some content as a control token"
            raise RowError(f"{where}: {error}", where, kind, str(error)) from None
        return codes

    def _with_aliases(self, text: str) -> str:
        """The text without marks, and with aliases for the control tokens that are not between marks."""
        return self._any_or_mark.sub(lambda found: found[1] or self._aliases.get(found[2], ""), text)

    @cached_property
    def _plain(self) -> PieceTokenizer:
        return PieceTokenizer(self._tokenizer)

    @cached_property
    def _apart(self) -> PieceTokenizer:
        """A tokenizer that knows the control tokens by their aliases and reads their names as text."""
        state = json.loads(self._tokenizer.to_str())
        for token in state["added_tokens"]:
            if token["content"] in self._aliases:
                token |= {"content": self._aliases[token["content"]], "single_word": False}
        renamed = Tokenizer.from_str(json.dumps(state))
        ids = {token["content"]: token["id"] for token in state["added_tokens"]}
        originals = {number: ids[token.content] for number, token in renamed.get_added_tokens_decoder().items()}
        return PieceTokenizer(renamed, originals, self._names.keys() - self._unknown)


def _is_control(added: str, template: str) -> bool:
    """Whether an added token that is not marked as special is a control token."""
    return _WORDS.fullmatch(added) is None and (_HTML.fullmatch(added) is None or added in template)


def _pattern_of(tokens: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(tokens, key=lambda token: (-len(token), token))
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _with_marks(text: str, tokens: re.Pattern[str]) -> str:
    while _MARK.search(text):
        text = _MARK.sub("", text)
    return tokens.sub(f"{OPEN}\\g<0>{CLOSE}", text)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_each_text(name, change): _each_text(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    return value
