"""Conversations, and what a tokenizer's chat template makes of them."""

import json
from typing import Any

from trainjob.errors import DataError

TEMPLATE = "chat_template"
TEMPLATE_FILE = "chat_template.jinja"
ASSISTANT = "assistant"

Message = dict[str, Any]
Pieces = list[tuple[str, bool]]
"""Consecutive parts of a text, and of each whether it is learned."""


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


def render(messages: list[Message], config: dict[str, Any], where: str, asks: bool = False) -> str:
    """The conversation as the template writes it; one that `asks` ends where the assistant's answer begins.

    Raises DataError where the template refuses the conversation.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    special: dict[str, Any] = {
        name: token["content"] if isinstance(token, dict) else token
        for name, token in config.items()
        if name.endswith("_token") and token is not None
    }
    try:
        (rendered,), _ = render_jinja_template(
            [messages], chat_template=template_of(config), add_generation_prompt=asks, **special
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


def turns(messages: list[Message], config: dict[str, Any], where: str) -> Pieces:
    """The conversation up to the assistant's last turn, of which its turns are learned: each from where the template
    asks for it to its end, but for white space there, which follows the token that ends a turn.

    Raises DataError where there is no such turn, and where the template writes the beginning of a conversation
    otherwise than that beginning alone.
    """
    answers = [number for number, message in enumerate(messages) if message["role"] == ASSISTANT]
    if not answers:
        raise DataError(f'{where}: no message has the role "{ASSISTANT}": there is nothing to learn')
    whole, done = render(messages[: answers[-1] + 1], config, where), 0
    pieces: Pieces = []
    for number in answers:
        given = render(messages[:number], config, where, asks=True) if number else _opening(config, where)
        answered = render(messages[: number + 1], config, where).rstrip()
        if not (whole.startswith(given) and whole.startswith(answered) and done <= len(given) < len(answered)):
            raise DataError(
                f"{where}: the chat template writes the messages before number {number + 1} differently when more "
                "follow, so what the assistant is to learn cannot be told from what it is given: change the template, "
                "or end the conversation there"
            )
        pieces += [(whole[done : len(given)], False), (whole[len(given) : len(answered)], True)]
        done = len(answered)
    return pieces


def _opening(config: dict[str, Any], where: str) -> str:
    """How the assistant's answer begins where it is the first message."""
    try:
        return render([], config, where, asks=True)
    except DataError:
        raise DataError(
            f"{where}: the conversation begins with the assistant, and the tokenizer's chat template does not say how "
            'that is asked for: put a message of the role "user" or "system" first'
        ) from None
