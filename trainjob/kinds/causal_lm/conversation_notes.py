"""Notes for users about conversations that are trained on anyway."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainjob.kinds.causal_lm.chat import ChatTemplate
from trainjob.kinds.causal_lm.conversations import PARALLEL, SYSTEM, calls_of

_HAS_TEXT, _NO_SCHEMA, _PARALLEL = 1, 2, 4
_FIELDS = {"refusal": 8, "reasoning_content": 16, "reasoning": 32, "thinking": 64, "audio": 128}
"""Message fields of chat APIs that only some templates write, each with its bit in a mark."""
_SYSTEM_FIRST, _SYSTEM_LATER = 256, 512


def conversation_marks(rows: Sequence[Sequence[str | None]]) -> np.ndarray:
    """Features to count in each row of messages, tools and PARALLEL, uint16 [n]; 0 for an empty row."""
    return np.array([_mark(*row) for row in rows], np.uint16)


def _mark(messages: str | None, tools: str | None = None, parallel: str | None = None) -> int:
    mark = _HAS_TEXT if messages and messages.strip() else 0
    if (parallel or "null").lower() != "null":
        mark |= _PARALLEL
    has_schema = (tools or "").strip() not in ("", "null", "[]")
    if any(f'"{name}"' in (messages or "") for name in ("tool_calls", SYSTEM, *_FIELDS)):
        for index, message in enumerate(_objects(messages)):
            if message.get("role") == SYSTEM and message.get("content"):
                mark |= _SYSTEM_LATER if index else _SYSTEM_FIRST
            mark |= 0 if has_schema or not calls_of(message) else _NO_SCHEMA
            mark |= sum(bit for name, bit in _FIELDS.items() if message.get(name))
    return mark


def _objects(messages: str | None) -> list[dict[str, Any]]:
    try:
        found = json.loads(messages or "null")
    except (ValueError, RecursionError):  # which the second pass names
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def conversation_notes(marks: np.ndarray, sample: Sequence[str], template: ChatTemplate) -> list[str]:
    """`marks` are of all rows, uint16 [n], and `sample` are some of their texts."""
    notes: list[str] = []
    no_schema, parallel = (int(np.count_nonzero(marks & bit)) for bit in (_NO_SCHEMA, _PARALLEL))
    every = f"of {len(marks):,} conversations have"
    if no_schema:
        notes.append(f"{no_schema:,} {every} tool_calls and no tools: the model learns the calls without their schema")
    if parallel and not template.uses(PARALLEL):
        notes.append(f"{parallel:,} {every} {PARALLEL}: the chat template does not use it")
    for bit, what, is_later in (
        (_SYSTEM_FIRST, "a system message", False),
        (_SYSTEM_LATER, "a system message after others", True),
    ):
        if (found := int(np.count_nonzero(marks & bit))) and template.ignores_system(is_later):
            notes.append(
                f"{found:,} {every} {what}: the chat template leaves it out, so answers are learned without it"
            )
    for name, bit in _FIELDS.items():
        if (found := int(np.count_nonzero(marks & bit))) and not template.uses(name):
            notes.append(
                f"{found:,} {every} messages with {name}: the chat template does not use it, so it is not learned"
            )
    spelled = [token for text in sample if (token := template.control_tokens.found(text)) is not None]
    if spelled:
        notes.append(
            f"{len(spelled):,} of {len(sample):,} sampled conversations contain texts spelled like control tokens, "
            f"such as {spelled[0]}: the model learns them as ordinary text"
        )
    return notes
