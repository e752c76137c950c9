"""Conversations, and what a tokenizer's chat template makes of them."""

import json
from typing import Any

from tokenizers import Tokenizer

from trainjob.data.control_tokens import ControlTokens
from trainjob.data.piece_tokenizer import Pieces
from trainjob.errors import DataError

TEMPLATE = "chat_template"
TEMPLATE_FILE = "chat_template.jinja"
ASSISTANT = "assistant"

Message = dict[str, Any]


def parse_messages(text: str | None, where: str) -> list[Message]:
    """A conversation written in JSON; fields that are null, which Parquet has where others of the column have a value,
    are left out. Raises DataError, which names the row by `where`, for what is none."""
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: the messages are not JSON: {error}") from None
    return checked_messages(found, where)


def checked_messages(found: Any, where: str) -> list[Message]:
    """The same of what was JSON."""
    shape = '[{"role": "user", "content": "…"}, …]'
    if not isinstance(found, list) or not found:
        raise DataError(f"{where}: messages must be a list such as {shape}, not {json.dumps(found)[:80]}")
    for number, message in enumerate(found, start=1):
        if not isinstance(message, dict):
            raise DataError(f"{where}: message {number} must be an object as in {shape}, not {type(message).__name__}")
        for field in ("role", "content"):
            if not isinstance(message.get(field), str):
                raise DataError(f'{where}: message {number} has no text as its "{field}": it must be as in {shape}')
    return [{name: value for name, value in message.items() if value is not None} for message in found]


class ChatTemplate:
    """A tokenizer's chat template. What a conversation holds is text to it, also where it is spelled like a control
    token: `control_tokens` makes the tokens of what is rendered. Picklable."""

    def __init__(self, config: dict[str, Any], tokenizer: Tokenizer) -> None:
        """`config` is the tokenizer's, for transformers. Raises DataError where it has no chat template."""
        self._template = template_of(config)
        self._special: dict[str, Any] = {
            name: token["content"] if isinstance(token, dict) else token
            for name, token in config.items()
            if name.endswith("_token") and token is not None
        }
        self.control_tokens = ControlTokens(tokenizer, self._template)

    def opening(self, messages: list[Message], where: str) -> str:
        """The conversation up to where the assistant's answer begins. Raises DataError as `turns` does."""
        return self._rendered(self._marked(messages), where, asks=True)

    def turns(self, messages: list[Message], where: str) -> Pieces:
        """The conversation up to the assistant's last turn, of which its turns are learned: each from where the
        template asks for it to its end, but for white space there, which follows the token that ends a turn.

        Raises DataError where the template refuses the conversation, where there is no such turn, and where the
        template writes the beginning of a conversation otherwise than that beginning alone.
        """
        answers = [number for number, message in enumerate(messages) if message["role"] == ASSISTANT]
        if not answers:
            raise DataError(f'{where}: no message has the role "{ASSISTANT}": there is nothing to learn')
        messages = self._marked(messages)
        whole, done = self._rendered(messages[: answers[-1] + 1], where), 0
        pieces: Pieces = []
        for number in answers:
            given = self._rendered(messages[:number], where, asks=True) if number else self._first_opening(where)
            answered = self._rendered(messages[: number + 1], where).rstrip()
            if not (whole.startswith(given) and whole.startswith(answered) and done <= len(given) < len(answered)):
                raise DataError(
                    f"{where}: the chat template writes the messages before number {number + 1} differently when more "
                    "follow, so what the assistant is to learn cannot be told from what it is given: change the "
                    "template, or end the conversation there"
                )
            pieces += [(whole[done : len(given)], False), (whole[len(given) : len(answered)], True)]
            done = len(answered)
        return pieces

    def _marked(self, messages: list[Message]) -> list[Message]:
        return [self.control_tokens.marked_message(message) for message in messages]

    def _first_opening(self, where: str) -> str:
        """How the assistant's answer begins where it is the first message."""
        try:
            return self._rendered([], where, asks=True)
        except DataError:
            raise DataError(
                f"{where}: the conversation begins with the assistant, and the tokenizer's chat template does not say "
                'how that is asked for: put a message of the role "user" or "system" first'
            ) from None

    def _rendered(self, messages: list[Message], where: str, asks: bool = False) -> str:
        """The conversation as the template writes it; one that `asks` ends where the assistant's answer begins.

        Raises DataError where the template refuses the conversation.
        """
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            (rendered,), _ = render_jinja_template(
                [messages], chat_template=self._template, add_generation_prompt=asks, **self._special
            )
        except Exception as error:  # a template computes, and may fail in any way
            raise DataError(f"{where}: the tokenizer's chat template refuses the messages: {error}") from None
        return rendered


def template_of(config: dict[str, Any]) -> str:
    """Raises DataError where the tokenizer has no chat template."""
    template = config.get(TEMPLATE)
    if isinstance(template, list):  # several by name, as older files have them
        template = {each["name"]: each["template"] for each in template}.get("default")
    if not isinstance(template, str):
        raise DataError(
            "the tokenizer has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json), "
            "which tells how messages become text: take a model that was made for conversations, or write a template"
        )
    return template
