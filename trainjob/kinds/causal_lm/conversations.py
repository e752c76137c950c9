"""Conversations in rows: messages, and the tools that the assistant may call, in the format of OpenAI's fine-tuning."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainjob.errors import DataError

ASSISTANT, SYSTEM = "assistant", "system"
TOOLS, PARALLEL = "tools", "parallel_tool_calls"
"""Columns beside the messages'; rows may have none."""
WEIGHT = "weight"
_TEXT_PARTS = ("text", "input_text", "output_text")
"""Types of a content's parts in OpenAI's APIs."""
_UNTRAINED = ("train", "training", "loss")
"""Fields of Axolotl, ms-swift and XTuner that determine whether a message is learned."""
_SHAPE = '[{"role": "user", "content": "…"}, …]'
_TOOL_SHAPE = '[{"type": "function", "function": {"name": "…", "parameters": {…}}}, …]'

Message = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A checked conversation. Its objects hold no nulls."""

    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    parallel_tool_calls: bool | None = None

    @property
    def learned(self) -> list[int]:
        """Indices of the messages that are learned: those of the assistant, except for weight 0."""
        return [
            index
            for index, message in enumerate(self.messages)
            if message["role"] == ASSISTANT and message.get(WEIGHT) != 0
        ]

    def as_prompt(self) -> "Conversation":
        """The conversation up to the last message that is not the assistant's; all of it if there is none."""
        others = [index for index, message in enumerate(self.messages, start=1) if message["role"] != ASSISTANT]
        return replace(self, messages=self.messages[: others[-1]]) if others else self


def parsed(columns: Mapping[str, str | None], where: str) -> Conversation:
    """The conversation in a row's columns: JSON of `messages` and, if present, of TOOLS and PARALLEL. Raises DataError
    if they do not form one; `where` is the row's location, for the message."""
    return checked({name: _parsed(text, name, where) for name, text in columns.items()}, where)


def checked(row: Mapping[str, Any], where: str) -> Conversation:
    """Like `parsed`, for values that are already read from JSON."""
    if unknown := row.keys() - {"messages", TOOLS, PARALLEL}:
        raise DataError(f"{where}: {min(unknown)} is unknown; a conversation has messages, {TOOLS} and {PARALLEL}")
    messages = _checked_messages(row.get("messages"), where)
    parallel = row.get(PARALLEL)
    if parallel not in (None, True, False):
        raise DataError(f"{where}: {PARALLEL} must be true or false, not {_shown(parallel)}")
    if parallel is False and (twice := [index for index, each in enumerate(messages, 1) if len(calls_of(each)) > 1]):
        raise DataError(f"{where}: message {twice[0]} has several tool_calls, and {PARALLEL} is false")
    return Conversation(messages, _checked_tools(row.get(TOOLS), where), parallel)


def without_nulls(value: Any) -> Any:
    """Removes null fields from objects, which Parquet adds if other rows have a value. Keeps nulls in lists and in JSON
    texts."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def arguments_of(function: Message) -> Any:
    """The arguments of a call. Raises ValueError for text that is not JSON."""
    given = function.get("arguments", {})
    return json.loads(given or "{}") if isinstance(given, str) else given


def _parsed(text: str | None, name: str, where: str) -> Any:
    if name == PARALLEL:  # as the format spells it
        text = (text or "null").lower()
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: the {name.replace('_', ' ')} are not JSON: {error}") from None


def _checked_messages(found: Any, where: str) -> list[Message]:
    if not isinstance(found, list) or not found:
        raise DataError(f"{where}: messages must be a list such as {_SHAPE}, not {_shown(found)}")
    return [_checked_message(message, f"{where}: message {number}") for number, message in enumerate(found, start=1)]


def _checked_message(found: Any, where: str) -> Message:
    if not isinstance(found, dict):
        raise DataError(f"{where} must be an object as in {_SHAPE}, not {type(found).__name__}")
    message = without_nulls(found)
    if isinstance(message.get("content"), list):
        message["content"] = _joined(message["content"], where)
    if not message.get("tool_calls", True):
        del message["tool_calls"]
    if not isinstance(message.get("tool_calls", []), list):
        raise DataError(f"{where}: tool_calls must be a list of calls, not {_shown(message['tool_calls'])}")
    if "role" not in message and isinstance(message.get("from"), str) and "value" in message:
        raise DataError(
            f'{where} is in ShareGPT\'s form: rename "from" to "role", its "human" to "user" and "gpt" to '
            f'"{ASSISTANT}", and "value" to "content"'
        )
    if untrained := next((name for name in _UNTRAINED if message.get(name) is False), None):
        raise DataError(f'{where} has "{untrained}": false; if the model must not learn it, write "{WEIGHT}": 0')
    needed = ("role",) if calls_of(message) and "content" not in message else ("role", "content")
    for name in needed:
        if not isinstance(message.get(name), str):
            raise DataError(f'{where} has no text in "{name}": it must look like {_SHAPE}')
    if "function_call" in message:
        raise DataError(f'{where} has a "function_call", the older form of "tool_calls": write it as one of these')
    weight = message.get(WEIGHT, 0)
    if weight not in (0, 1):
        raise DataError(f"{where}: {WEIGHT} must be 0 or 1, not {_shown(weight)}")
    if weight and message["role"] != ASSISTANT:
        raise DataError(f'{where}: {WEIGHT} is 1, but only messages of the role "{ASSISTANT}" are learned')
    for number, call in enumerate(calls_of(message), start=1):
        _check_call(call, f"{where}, call {number}")
    return message


def is_empty(message: Message) -> bool:
    """Whether a checked message has neither a content nor calls, reasoning or the like."""
    others = any(value for name, value in message.items() if name not in ("role", "content", "name", WEIGHT))
    return not (others or message.get("content", "").strip())


def calls_of(message: Message) -> list[Any]:
    """The calls of a message that may be of any shape."""
    calls = message.get("tool_calls") or []
    return calls if isinstance(calls, list) else [calls]


def _check_call(call: Any, where: str) -> None:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        shape = '{"function": {"name": "…", "arguments": "{…}"}}'
        raise DataError(f"{where}: a tool call must be as {shape}, not {_shown(call)}")
    try:
        arguments = arguments_of(function)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: the arguments of {function['name']} are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise DataError(f"{where}: the arguments of {function['name']} must be an object, not {_shown(arguments)}")


def _joined(parts: list[Any], where: str) -> str:
    texts: list[str] = []
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        is_text = not isinstance(part, dict) or part.get("type", "text") in _TEXT_PARTS
        if not (is_text and isinstance(text, str)):
            raise DataError(f"{where}: the content's parts must be texts, not {_shown(part)}")
        texts.append(text)
    return "".join(texts)


def _checked_tools(found: Any, where: str) -> list[dict[str, Any]]:
    if isinstance(found, str):  # a JSON text in a column of JSON
        found = _parsed(found, TOOLS, where)
    tools = without_nulls([] if found is None else found)
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and tool for tool in tools):
        raise DataError(f"{where}: {TOOLS} must be a list such as {_TOOL_SHAPE}, not {_shown(found)}")
    return tools


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]
