"""What a language model reads of a row, and what of that it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from trainjob.api import Dataset
from trainjob.data.chat import ASSISTANT, Message, Pieces, checked_messages, parse_messages, render, turns
from trainjob.data.rows import as_json, as_text, check_columns, row_number
from trainjob.data.text import joined_texts
from trainjob.errors import DataError

Form = Literal["text", "completion", "messages"]
Prompt = str | list[Message]
Where = Callable[[int], str]


@dataclass(frozen=True)
class Layout:
    """Which columns hold what: any number of `text`, a prompt's and a completion's, or one of `messages`."""

    form: Form
    columns: list[str]

    @property
    def prompt_columns(self) -> list[str]:
        """What is needed of a row that the model is to continue."""
        return self.columns[:1] if self.form == "completion" else self.columns

    @property
    def nested(self) -> list[str]:
        """Columns that may hold lists and objects, and are read as JSON."""
        return self.columns if self.form == "messages" else []

    def sources(self, table: pa.Table, where: Where = row_number) -> list[str]:
        """The row's text as it came, by which rows are told apart."""
        if self.form == "text":
            return joined_texts(table, self.columns, where)
        return ["\n".join(value or "" for value in row) for row in zip(*self._values(table, where), strict=True)]

    def pieces(self, table: pa.Table, config: dict[str, Any], where: Where = row_number) -> list[Pieces]:
        """What is read of each row; `config` is the tokenizer's. Raises DataError for a row that teaches nothing."""
        if self.form == "text":
            return [[(text, True)] for text in joined_texts(table, self.columns, where)]
        if self.form == "messages":
            return [turns(messages, config, where(row)) for row, messages in enumerate(self._messages(table, where))]
        prompts, completions = self._values(table, where)
        for row, completion in enumerate(completions):
            if not completion:
                raise DataError(f'{where(row)}: "{self.columns[1]}" is empty: there is nothing to learn')
        pairs = zip(prompts, completions, strict=True)
        return [[(prompt or "", False), (completion or "", True)] for prompt, completion in pairs]

    def prompts(self, table: pa.Table, where: Where = row_number) -> list[Prompt]:
        """What the model is to continue of each row; answers at a conversation's end are left out."""
        if self.form == "messages":
            return [_asked(messages) for messages in self._messages(table, where)]
        return [*joined_texts(table, self.prompt_columns, where)]

    def opening(self, prompt: Prompt, config: dict[str, Any], where: str) -> str:
        """The text that the model continues. Raises DataError for a conversation where a text is wanted."""
        if self.form == "messages":
            if isinstance(prompt, str):
                prompt = [{"role": "user", "content": prompt}]
            return render(checked_messages(prompt, where), config, where, asks=True)
        if not isinstance(prompt, str):
            raise DataError(f"{where}: the model continues texts, and knows no {type(prompt).__name__}")
        return prompt

    def _messages(self, table: pa.Table, where: Where) -> list[list[Message]]:
        (texts,) = self._values(table, where)
        return [parse_messages(text, where(row)) for row, text in enumerate(texts)]

    def _values(self, table: pa.Table, where: Where) -> list[list[str | None]]:
        check_columns(self.columns, table.column_names, "the table")
        read = as_json if self.form == "messages" else as_text
        return [read(table[name], name, where).to_pylist() for name in self.columns]


def layout_of(dataset: Dataset) -> Layout:
    """Where a language model finds its texts."""
    if dataset.messages is not None:
        return Layout("messages", [dataset.messages])
    if dataset.prompt is not None and dataset.completion is not None:
        return Layout("completion", [dataset.prompt, dataset.completion])
    assert dataset.text is not None
    return Layout("text", dataset.text)


def _asked(messages: list[Message]) -> list[Message]:
    """Up to the last message that is not the assistant's; all where there is no other."""
    others = [number for number, message in enumerate(messages, start=1) if message["role"] != ASSISTANT]
    return messages[: others[-1]] if others else messages
