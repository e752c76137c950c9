"""Turns texts into tokens with their offsets in the text and, where the spans are known, their tags."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.conll import TAGS, ConllFile
from trainjob.data.read.json_lines import JSONLinesFile
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import ReadTable, Rows, SourcePart, row_number
from trainjob.data.read.spans import spans_given
from trainjob.data.read.token_tags import TokenRows
from trainjob.kinds.inputs.text import (
    EXCERPT_CHARACTERS,
    FEW_OUTPUTS,
    PLAIN_TOKENS,
    joined_texts,
    pad_token_id,
    text_contents,
)
from trainjob.kinds.inputs.text_columns import TextColumns
from trainjob.kinds.token_classifier.tags import tags_of
from trainjob.pretrained.tokenizers import load_tokenizer, padded_length, save_tokenizer
from trainjob.schema.spans import Span


class TaggedTokens(NamedTuple):
    """A prepared row."""

    ids: np.ndarray
    """int32 [t]."""
    tags: np.ndarray
    """int32 [t]."""
    offsets: np.ndarray
    """Start and end of each token in characters of the text, int32 [t, 2]."""
    spans: np.ndarray
    """Start, end and number of the type of each span, int32 [s, 3]."""


@dataclass(frozen=True)
class SpanInput(TextColumns):
    """Tokenizes a text, without special tokens and whatever its length: the network reads it in windows."""

    packs: ClassVar[bool] = False
    values_of_token: ClassVar[int] = 4
    """Values of a prepared row for each token, besides those of spans: the token, its tag, and its offsets."""

    label: str
    """The column of spans, which rows to predict need not have."""
    types: list[str]

    @property
    def pad_token_id(self) -> int:
        return pad_token_id(self.tokenizer, self.tokenizer_config)

    @property
    def ends(self) -> tuple[list[int], list[int]]:
        """The special tokens before a text and after it."""
        ids, plain = (self.tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
        first = next(start for start in range(len(ids)) if ids[start : start + len(plain)] == plain)
        return ids[:first], ids[first + len(plain) :]

    @property
    def row_bytes(self) -> int:
        return round((4 * self.mean_length + 2) * self.value_bytes) + 2 * np.int64().itemsize

    def parts(self, found: Sequence[SourcePart], column: str | None, read: ReadTable) -> Sequence[SourcePart]:
        """Lists of tokens are joined, as in training."""
        text = self.columns[0]
        return [TokenRows(_without_tags(part, text), text, None, read) for part in found]

    def contents(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[bytes]:
        return text_contents(joined_texts(table, self.columns, where))

    def check(self, rows: Rows) -> None:
        """Any text can be used."""

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """Rows of list<int32>, which `unpacked` reads."""
        texts = joined_texts(table, self.columns, where)
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        spans = spans_given(table, self.columns[0], self.label, where)
        rows = [self._row(*each) for each in zip(texts, encodings, spans, strict=True)]
        values = np.concatenate([np.empty(0, np.int32), *rows])
        return as_lists(values, np.array([len(row) for row in rows], np.int64))

    def _row(self, text: str, encoding: Any, spans: Sequence[Span]) -> np.ndarray:
        offsets = token_offsets(text, encoding)
        known = [span for span in spans if span[2] in self.types]
        tags = tags_of(known, offsets[:, 0], offsets[:, 1], self.types)
        numbers = [(start, end, self.types.index(kind)) for start, end, kind in known]
        parts = ([len(encoding.ids)], encoding.ids, tags, offsets.ravel(), np.array(numbers, np.int32).ravel())
        return np.concatenate([np.asarray(part, np.int32) for part in parts])

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """tokens and mask, int64 [n, length]; offsets, int64 [n, length, 2], 0 where there is no token; and spans,
        int64 [n, most, 3], -1 where there is none."""
        rows = unpacked(examples)
        length = padded_length(np.array([max(len(row.ids), 1) for row in rows]), self.max_length)
        tokens = np.full((len(rows), length), self.pad_token_id, np.int64)
        mask, offsets = np.zeros((len(rows), length), np.int64), np.zeros((len(rows), length, 2), np.int64)
        spans = np.full((len(rows), max(1, *(len(row.spans) for row in rows)), 3), -1, np.int64)
        for index, row in enumerate(rows):
            size = len(row.ids)
            tokens[index, :size], mask[index, :size], offsets[index, :size] = row.ids, 1, row.offsets
            spans[index, : len(row.spans)] = row.spans
        return {"tokens": tokens, "mask": mask, "offsets": offsets, "spans": spans}

    def plain(self, rows: Rows) -> list[str]:
        return joined_texts(rows.table, self.columns, rows.where)

    def most_plain_rows(self, width: int) -> int:
        return int(PLAIN_TOKENS * FEW_OUTPUTS // max(width, FEW_OUTPUTS) / max(self.mean_length, 1))

    def cut_share(self, texts: Sequence[str]) -> None:
        """Long texts are read in windows."""

    def excerpts(self, rows: Rows, mistakes: np.ndarray) -> dict[str, pa.Array]:
        return {"text": pa.array([text[:EXCERPT_CHARACTERS] for text in self.plain(rows)], pa.string())}

    def save(self, folder: Path) -> dict[str, Any]:
        """Also writes, for transformers too, tokenizer.json and tokenizer_config.json."""
        save_tokenizer(self.tokenizer, self.tokenizer_config, folder)
        return {
            "columns": self.columns,
            "label": self.label,
            "max_length": self.max_length,
            "mean_length": self.mean_length,
        }

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any], types: list[str]) -> Self:
        """The input that was saved with these fields of preprocessor.json."""
        tokenizer, config = load_tokenizer(folder, None)
        return cls(**state, types=types, tokenizer=tokenizer, tokenizer_config=config)


def _without_tags(part: SourcePart, text: str) -> SourcePart:
    """The part for rows to predict, whose column `text` may list tokens without tags."""
    if isinstance(part, Partition):
        return replace(part, part=_without_tags(part.part, text))
    if isinstance(part, ConllFile):
        return replace(part, optional=(TAGS,))
    return replace(part, nested=(text,)) if isinstance(part, JSONLinesFile) else part


def token_offsets(text: str, encoding: Any) -> np.ndarray:
    """Start and end of each token, without blanks before it, int32 [t, 2]."""
    positions = [(start + len(text[start:end]) - len(text[start:end].lstrip()), end) for start, end in encoding.offsets]
    return np.array([(min(start, end), end) for start, end in positions], np.int32).reshape(-1, 2)


def unpacked(examples: Examples) -> list[TaggedTokens]:
    rows: list[TaggedTokens] = []
    for start, stop in zip(examples.offsets[:-1].tolist(), examples.offsets[1:].tolist(), strict=True):
        size, row = int(examples.values[start]), examples.values[start + 1 : stop]
        ids, tags, offsets, spans = np.split(row, [size, 2 * size, 4 * size])
        rows.append(TaggedTokens(ids, tags, offsets.reshape(-1, 2), spans.reshape(-1, 3)))
    return rows
