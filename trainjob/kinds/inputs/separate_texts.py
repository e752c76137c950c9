"""Pairs and triplets of texts that the network reads one by one."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import row_number
from trainjob.kinds.inputs.text import TextInput, cleaned
from trainjob.kinds.inputs.token_codes import FLAG_BIT, MAX_TOKENS, codes_of, read_codes, stored
from trainjob.pretrained.tokenizers import cut_share, padded_length


@dataclass(frozen=True)
class SeparateTexts(TextInput):
    """The tokens of a text or, one after the other, of the texts of a pair or a triplet. The type of a token is the
    number of its text, from 0."""

    encodes_pairs: ClassVar[bool] = False

    negative: list[str] = field(default_factory=list[str])
    """Those of `columns` with the third text of a triplet."""

    @property
    def groups(self) -> list[list[str]]:
        first = [name for name in self.columns if name not in (*self.pair, *self.negative)]
        return [names for names in (first, self.pair, self.negative) if names]

    @cached_property
    def flag_bits(self) -> int:
        return (len(self.groups) - 1).bit_length()

    def alone(self) -> Self:
        """The input of rows of one text."""
        return replace(self, columns=self.groups[0], pair=[], negative=[])

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """The codes of each row, lists of `value_type`; a flag is the number of a text. Raises DataError for missing
        columns and undecodable bytes."""
        rows = self._texts(table, where)
        count = len(self.groups)
        texts = [cleaned([text], self.cleaning) for row in rows for text in row]
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]
        codes = codes_of(itertools.chain.from_iterable(tokens))
        lengths = np.array([len(row) for row in tokens], np.int64).reshape(-1, count)
        codes |= np.repeat(np.tile(np.arange(count, dtype=np.int32), len(rows)), lengths.ravel()) << FLAG_BIT
        return as_lists(stored(codes, self.token_type, self.flag_bits), lengths.sum(axis=1))

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """ids and mask, of pairs also pair_ids and pair_mask, and of triplets negative_ids and negative_mask, all int64
        [n, `padded_length`]."""
        codes = read_codes(examples.values, self.flag_bits)
        types, ids = codes >> FLAG_BIT, codes & (MAX_TOKENS - 1)
        rows = np.repeat(np.arange(len(examples)), examples.lengths)
        inputs: dict[str, np.ndarray] = {}
        for number, name in enumerate(("", "pair_", "negative_")[: len(self.groups)]):
            lengths = np.bincount(rows[types == number], minlength=len(examples))
            positions = np.arange(padded_length(np.maximum(lengths, 1), self.max_length))
            mask = positions < np.maximum(lengths, 1)[:, None]
            padded = np.full(mask.shape, self.pad_token_id, np.int64)
            padded[positions < lengths[:, None]] = ids[types == number]
            inputs |= {f"{name}ids": padded, f"{name}mask": mask.astype(np.int64)}
        return inputs

    def save(self, folder: Path) -> dict[str, Any]:
        return super().save(folder) | {"negative": self.negative}

    def cut_share(self, texts: Sequence[str]) -> float | None:
        return cut_share(self.tokenizer, self.encodable(texts))

    def encodable(self, texts: Sequence[str]) -> list[Any]:
        return [line for text in texts for line in text.split("\n")]
