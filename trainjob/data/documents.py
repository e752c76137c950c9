"""What a language model reads of a row, and what of that it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from trainjob.api import Dataset
from trainjob.data.chat import ASSISTANT, ChatTemplate, Message, checked_messages, parse_messages
from trainjob.data.piece_tokenizer import Pieces
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

    def texts(self, table: pa.Table, where: Where = row_number) -> list[str]:
        """The text of each row, where columns hold texts."""
        return joined_texts(table, self.columns, where)

    def conversations(self, table: pa.Table, template: ChatTemplate, where: Where = row_number) -> list[Pieces]:
        """The rendered conversation of each row. Raises DataError for a row that teaches nothing."""
        return [template.turns(messages, where(row)) for row, messages in enumerate(self._messages(table, where))]

    def pairs(self, table: pa.Table, where: Where = row_number) -> list[Pieces]:
        """Prompt and completion of each row. Raises DataError for a row that teaches nothing."""
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


def opening(prompt: Prompt, template: ChatTemplate, where: str) -> str:
    """The rendered conversation that the model continues; a text is what a user says."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    return template.opening(checked_messages(prompt, where), where)


def _asked(messages: list[Message]) -> list[Message]:
    """Up to the last message that is not the assistant's; all where there is no other."""
    others = [number for number, message in enumerate(messages, start=1) if message["role"] != ASSISTANT]
    return messages[: others[-1]] if others else messages
