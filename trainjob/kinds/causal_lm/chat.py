"""Renders conversations with a tokenizer's chat template."""

import json
import re
from datetime import datetime
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from trainjob.errors import DataError, RowError
from trainjob.kinds.causal_lm.control_tokens import ControlTokens
from trainjob.kinds.causal_lm.conversations import (
    ASSISTANT,
    PARALLEL,
    SYSTEM,
    TOOLS,
    WEIGHT,
    Conversation,
    Message,
    arguments_of,
    is_empty,
)
from trainjob.kinds.causal_lm.piece_tokenizer import Pieces
from trainjob.pretrained.tokenizers import TEMPLATE

_NOW = re.compile(r"""\bstrftime_now\(\s*(["'])(.*?)\1\s*\)""")
_PROBED_TOOL = {
    "type": "function",
    "function": {
        "name": "probe",
        "description": "Probes.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string", "description": "Any."}}},
    },
}
_PROBED_ARGUMENTS = {"key": "any value"}
_SILENT: tuple[dict[str, str | None], ...] = ({}, {"content": None}, {"content": ""})
_USUAL_ROLES = (SYSTEM, "user", ASSISTANT)


class ChatTemplate:
    """A tokenizer's chat template, picklable. Contents that are spelled like a control token stay text:
    `control_tokens` tokenizes the rendered conversation."""

    def __init__(self, config: dict[str, Any], tokenizer: Tokenizer, now: str | None = None) -> None:
        """`config` is the tokenizer's, for transformers. `now` is the ISO date and time that the template writes
        instead of the current one. Raises DataError where there is no chat template."""
        self._template = template_of(config)
        if now is not None:
            self._template = _at(datetime.fromisoformat(now), self._template)
        self._special: dict[str, Any] = {
            name: token["content"] if isinstance(token, dict) else token
            for name, token in config.items()
            if name.endswith("_token") and token is not None
        }
        self.control_tokens = ControlTokens(tokenizer, self._template)

    def uses(self, name: str) -> bool:
        """Whether the template mentions a setting."""
        return name in self._template

    def ignores_system(self, later: bool) -> bool:
        """Whether the template leaves out a system message, at the start or `later`. False if it refuses one there."""
        turn = [{"role": "user", "content": "a"}, {"role": ASSISTANT, "content": "b"}]
        start, system = turn if later else [], {"role": SYSTEM, "content": "probe"}
        with_system, without = (
            _Rendering(self._template, self._special, messages, [], "")
            for messages in ([*start, system, *turn], [*start, *turn])
        )
        try:
            return with_system.text(len(start) + 3) == without.text(len(start) + 2)
        except DataError:
            return False

    def opening(self, conversation: Conversation, where: str) -> str:
        """The conversation up to where the assistant's answer begins. Raises DataError where the template refuses it or
        leaves out tools or calls."""
        rendering = self._rendering(conversation, where)
        rendering.check_calls(len(conversation.messages), asks=True)
        return rendering.text(len(conversation.messages), asks=True)

    def turns(self, conversation: Conversation, where: str) -> Pieces:
        """The conversation up to the assistant's last turn. The assistant's turns are learned: each from where the
        template asks for it to the token that ends it, without the white space that follows.

        Raises DataError if the template refuses the conversation or leaves out tools or calls, if the assistant has no
        turn, or if the template writes the first messages differently when more messages follow.
        """
        answers = conversation.learned
        if not answers:
            without = "" if all(WEIGHT not in message for message in conversation.messages) else " and a weight of 1"
            kind = f'no message has the role "{ASSISTANT}"{without}: there is nothing to learn'
            roles = ", ".join(dict.fromkeys(message["role"] for message in conversation.messages))
            raise RowError(f"{where}: {kind}; the roles are {roles}", where, kind, f"the roles are {roles}")
        if all(is_empty(conversation.messages[number]) for number in answers):
            kind = "the assistant's messages are empty: there is nothing to learn"
            raise RowError(f"{where}: {kind}", where, kind)
        rendering = self._rendering(conversation, where)
        rendering.check_calls(answers[-1] + 1)
        whole, done = rendering.text(answers[-1] + 1), 0
        pieces: Pieces = []
        for number in answers:
            given = rendering.text(number, asks=True) if number else rendering.first_opening()
            answered = rendering.text(number + 1).rstrip()
            if not whole.startswith(answered):  # where the template ends every text with the token that ends texts
                answered = answered.removesuffix(self._special.get("eos_token", "")).rstrip()
            if not (whole.startswith(given) and whole.startswith(answered) and done <= len(given) < len(answered)):
                raise DataError(
                    f"{where}: the chat template writes the messages before number {number + 1} differently when more "
                    "follow, so the assistant's part cannot be separated from its input: change the template, or end "
                    "the conversation there"
                )
            pieces += [(whole[done : len(given)], False), (whole[len(given) : len(answered)], True)]
            done = len(answered)
        return pieces

    def _rendering(self, conversation: Conversation, where: str) -> "_Rendering":
        control, (silent, is_text) = self.control_tokens, self._calls
        messages = [
            control.marked_message(_as_called({n: v for n, v in message.items() if n != WEIGHT}, silent, is_text))
            for message in conversation.messages
        ]
        settings: dict[str, Any] = dict(self._special)
        if conversation.parallel_tool_calls is not None:
            settings[PARALLEL] = conversation.parallel_tool_calls
        return _Rendering(self._template, settings, messages, control.marked(conversation.tools), where)

    @cached_property
    def _calls(self) -> tuple[dict[str, str | None], bool]:
        """The content that the template expects for a message that has only calls, and whether it expects arguments as
        JSON text instead of objects. Found by trial, because templates differ."""
        for is_text in (False, True):
            for silent in _SILENT:
                if self._writes_calls(silent, is_text):
                    return silent, is_text
        return {"content": ""}, False

    def _writes_calls(self, silent: dict[str, str | None], is_text: bool) -> bool:
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "probe", "arguments": _PROBED_ARGUMENTS}}
        messages = [
            {"role": "user", "content": "Any?"},
            _as_called({"role": ASSISTANT, "tool_calls": [call]}, silent, is_text),
        ]
        try:
            text = _Rendering(self._template, self._special, messages, [_PROBED_TOOL], "").text(2)
        except DataError:
            return False
        if is_text:
            return json.dumps(_PROBED_ARGUMENTS) in text
        return _PROBED_ARGUMENTS["key"] in text and str(_PROBED_ARGUMENTS) not in text


class _Rendering:
    """A conversation that is rendered up to any of its messages."""

    def __init__(
        self, template: str, settings: dict[str, Any], messages: list[Message], tools: list[Any], where: str
    ) -> None:
        self._template, self._settings, self._messages, self._tools = template, settings, messages, tools
        self._where = where

    def text(self, count: int, asks: bool = False) -> str:
        """The first messages as the template renders them; with `asks`, up to where the assistant's answer begins.

        Raises DataError where the template refuses them.
        """
        return self._rendered(self._messages[:count], self._tools, asks)

    def first_opening(self) -> str:
        """The prefix of the assistant's answer if it is the first message."""
        try:
            return self.text(0, asks=True)
        except DataError:
            raise DataError(
                f"{self._where}: the conversation begins with the assistant, and the chat template has no "
                'prompt for that: put a message of the role "user" or "system" first'
            ) from None

    def check_calls(self, count: int, asks: bool = False) -> None:
        """Raises DataError if the template leaves out tools, calls or their results."""
        for number, message in enumerate(self._messages[:count]):
            if "tool_calls" in message:
                other = {"content": ""} | {name: value for name, value in message.items() if name != "tool_calls"}
            elif message["role"] not in _USUAL_ROLES:
                other = message | {"content": message["content"] + "."}
            else:
                continue
            if self._is_same(self._messages[: number + 1], [*self._messages[:number], other], self._tools):
                what = "the tool_calls" if "tool_calls" in message else f'the content (role "{message["role"]}")'
                raise DataError(
                    f"{self._where}: the chat template leaves out {what} of message {number + 1}: use a model whose "
                    "template writes it, or move it into a message that the template uses"
                )
        if self._tools and self._is_same(self._messages[:count], self._messages[:count], [], asks):
            raise DataError(
                f'{self._where}: the chat template leaves out the row\'s "{TOOLS}", so the model would learn calls '
                f"without the tools they call: use a model whose template writes {TOOLS}, or leave the column out"
            )

    def _is_same(self, some: list[Message], others: list[Message], tools: list[Any], asks: bool = False) -> bool:
        """Whether some messages, with all tools, are written as others with these tools are."""
        some_text = self._rendered(some, self._tools, asks)
        try:
            return some_text == self._rendered(others, tools, asks)
        except DataError:
            return False

    def _rendered(self, messages: list[Message], tools: list[Any], asks: bool) -> str:
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            (rendered,), _ = render_jinja_template(
                [messages],
                tools=tools or None,
                chat_template=self._template,
                add_generation_prompt=asks,
                **self._settings,
            )
        except Exception as error:  # a template computes, and may fail in any way
            raise DataError(f"{self._where}: the tokenizer's chat template refuses the messages: {error}") from None
        return rendered


def template_of(config: dict[str, Any]) -> str:
    """Raises DataError where the tokenizer has no chat template."""
    template = config.get(TEMPLATE)
    if isinstance(template, list):  # several by name, as older files have them
        template = {each["name"]: each["template"] for each in template}.get("default")
    if not isinstance(template, str):
        raise DataError(
            "the tokenizer has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json), "
            "which turns messages into text: use a model made for conversations, or write a template"
        )
    return template


def _at(now: datetime, template: str) -> str:
    """The template with `now` instead of the current date, if it spells out the format."""
    return _NOW.sub(lambda found: json.dumps(now.strftime(found[2])), template)


def _as_called(message: Message, silent: dict[str, str | None], is_text: bool) -> Message:
    """The message with its calls' arguments as text or as objects, and with `silent` where it has no content."""
    if "tool_calls" not in message:
        return message
    calls = [_with_arguments(call, is_text) for call in message["tool_calls"]]
    return silent | message | {"tool_calls": calls}


def _with_arguments(call: Message, is_text: bool) -> Message:
    if "function" in call:
        return call | {"function": _with_arguments(call["function"], is_text)}
    given = call.get("arguments", {})
    if not is_text:
        return call | {"arguments": arguments_of(call)}
    return call | {"arguments": (given or "{}") if isinstance(given, str) else json.dumps(given, ensure_ascii=False)}
