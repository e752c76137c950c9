"""Selects the parts of a row that a language model reads, and those that it learns."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset
from trainjob.data.read.rows import as_json, as_text, found_columns, row_number
from trainjob.errors import DataError, RowError
from trainjob.kinds.causal_lm.chat import ChatTemplate
from trainjob.kinds.causal_lm.conversation_notes import conversation_marks
from trainjob.kinds.causal_lm.conversations import PARALLEL, TOOLS, Conversation, Message, checked, parsed
from trainjob.kinds.causal_lm.piece_tokenizer import Pieces
from trainjob.kinds.input import Where
from trainjob.kinds.inputs.text import joined_texts

Form = Literal["text", "completion", "messages"]
Prompt = str | list[Message] | dict[str, Any] | Conversation
"""A text, or a conversation: its messages alone, or `{"messages": […], "tools": […]}`."""


@dataclass(frozen=True)
class RowLayout:
    """The columns of a row and their contents: one or more texts, a prompt and a completion, or messages with their
    tools."""

    form: Form
    columns: list[str]

    @property
    def prompt_columns(self) -> list[str]:
        """Columns of a row that the model continues."""
        return self.columns[:1] if self.form == "completion" else self.columns

    @property
    def nested(self) -> list[str]:
        """Columns that may hold lists and objects, and are read as JSON."""
        return self.columns if self.form == "messages" else []

    @property
    def optional(self) -> list[str]:
        """Columns that may be missing."""
        return self.nested[1:]

    def raw_texts(self, table: pa.Table, where: Where = row_number) -> list[str]:
        """The raw text of each row, which identifies it."""
        if self.form == "text":
            return joined_texts(table, self.columns, where)
        return [_raw_text(row) for row in zip(*self._values(table, where), strict=True)]

    def raw_texts_and_marks(self, table: pa.Table, where: Where = row_number) -> tuple[list[str], np.ndarray]:
        """The raw texts, and the features of each row that the first pass counts, uint16 [n]: 0 if it has no text."""
        if self.form == "messages":
            rows = list(zip(*self._values(table, where), strict=True))
            return [_raw_text(row) for row in rows], conversation_marks(rows)
        texts = self.raw_texts(table, where)
        return texts, np.array([bool(text.strip()) for text in texts], np.uint16)

    def texts(self, table: pa.Table, where: Where = row_number) -> list[str]:
        """The text of each row, where columns hold texts."""
        return joined_texts(table, self.columns, where)

    def conversations(self, table: pa.Table, template: ChatTemplate, where: Where = row_number) -> list[Pieces]:
        """The rendered conversation of each row. Raises DataError for a row that teaches nothing."""
        found: list[Pieces] = []
        for row, each in enumerate(self._conversations(table, where)):
            with row_errors(where(row), "the chat template cannot represent the conversation"):
                found.append(template.turns(each, where(row)))
        return found

    def pairs(self, table: pa.Table, where: Where = row_number) -> list[Pieces]:
        """Prompt and completion of each row. Raises DataError for a row that teaches nothing."""
        prompts, completions = self._values(table, where)
        for row, completion in enumerate(completions):
            if not completion:
                kind = f'"{self.columns[1]}" is empty: there is nothing to learn'
                raise RowError(f"{where(row)}: {kind}", where(row), kind)
        pairs = zip(prompts, completions, strict=True)
        return [[(prompt or "", False), (completion or "", True)] for prompt, completion in pairs]

    def prompts(self, table: pa.Table, where: Where = row_number) -> list[Prompt]:
        """The prompt of each row; an answer at a conversation's end is left out."""
        if self.form == "messages":
            return [conversation.as_prompt() for conversation in self._conversations(table, where)]
        return [*joined_texts(table, self.prompt_columns, where)]

    def _conversations(self, table: pa.Table, where: Where) -> list[Conversation]:
        names = ["messages", *self.optional]
        rows = zip(*self._values(table, where), strict=True)
        found: list[Conversation] = []
        for number, row in enumerate(rows):
            with row_errors(where(number), "the conversation is not well-formed"):
                found.append(parsed(dict(zip(names, row, strict=True)), where(number)))
        return found

    def _values(self, table: pa.Table, where: Where) -> list[list[str | None]]:
        there = found_columns(self.columns, table.column_names, "the table", self.optional)
        read = as_json if self.form == "messages" else as_text
        return [
            read(table[name], name, where).to_pylist() if name in there else [None] * len(table)
            for name in self.columns
        ]


def _raw_text(row: Sequence[str | None]) -> str:
    return "\n".join(value or "" for value in row)


@contextmanager
def row_errors(location: str, kind: str) -> Generator[None]:
    """Turns a DataError over a row, whose message begins with its location, into a RowError."""
    try:
        yield
    except RowError:
        raise
    except DataError as error:
        raise RowError(str(error), location, kind, str(error).removeprefix(location).lstrip(": ")) from None


def layout_of(dataset: Dataset) -> RowLayout:
    """The columns that hold the texts of a language model."""
    if dataset.messages is not None:
        return RowLayout("messages", list(dict.fromkeys([dataset.messages, TOOLS, PARALLEL])))
    if dataset.prompt is not None and dataset.completion is not None:
        return RowLayout("completion", [dataset.prompt, dataset.completion])
    assert dataset.text is not None
    return RowLayout("text", dataset.text)


def prompt_text(prompt: Prompt, template: ChatTemplate, where: str) -> str:
    """The rendered conversation that the model continues; a text counts as a user's message."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not isinstance(prompt, Conversation):
        prompt = checked(prompt if isinstance(prompt, dict) else {"messages": prompt}, where)
    return template.opening(prompt, where)
