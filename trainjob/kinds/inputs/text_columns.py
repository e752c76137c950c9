"""Inputs that read text columns with a tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from trainjob.data.read.rows import ReadTable, SourcePart
from trainjob.kinds.input import FormField
from trainjob.kinds.inputs.python_rows import table_of_texts
from trainjob.kinds.inputs.questions import Question, text_example, text_question
from trainjob.kinds.inputs.token_codes import TokenType
from trainjob.pretrained.tokenizer_check import check_export


@dataclass(frozen=True)
class TextColumns:
    """The part of `trainjob.kinds.kind.Input` that is the same for all such inputs."""

    noun: ClassVar[str] = "text"

    columns: list[str]
    max_length: int
    """Most tokens of a row, special ones included."""
    mean_length: float
    """Tokens of a training text, on average."""
    tokenizer: Tokenizer
    """Set not to pad."""
    tokenizer_config: dict[str, Any]
    """Further settings for transformers."""
    _: KW_ONLY
    token_type: TokenType = "int32"
    """The type of the values of prepared rows. Runs keep the one that they began with; once it was always int32."""

    @property
    def value_type(self) -> pa.DataType:
        return pa.from_numpy_dtype(self.token_type)

    @property
    def value_bytes(self) -> int:
        """Memory of each value of a prepared row."""
        return np.dtype(self.token_type).itemsize

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.get_vocab_size()

    def is_empty(self, content: bytes) -> bool:
        return not content.strip()

    def alone(self) -> Self:
        return self

    def table(self, rows: Sequence[Any] | np.ndarray, where: Callable[[int], str]) -> pa.Table:
        return table_of_texts(rows, self.columns, where)

    def parts(self, found: Sequence[SourcePart], column: str | None, read: ReadTable) -> Sequence[SourcePart]:
        return found

    def question(self, most_rows: int) -> type[Question]:
        return text_question(self.columns, most_rows)

    def example(self) -> dict[str, Any]:
        return text_example(self.columns)

    @property
    def form_fields(self) -> list[FormField]:
        return [FormField(column, is_text=True) for column in self.columns]

    def check_export(self, folder: Path, texts: Sequence[str]) -> None:
        check_export(folder, self.tokenizer, self.tokenizer_config, texts)
