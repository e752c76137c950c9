"""Texts in the cells of a table to tokens."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from trainjob.api import Cleaning
from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.doing import DOING
from trainjob.errors import DataError
from trainjob.kinds.inputs.cleaning import clean
from trainjob.kinds.inputs.text import pad_token_id, pretrained_text_tokenizer, train_wordpiece
from trainjob.kinds.inputs.token_codes import MAX_TOKENS, largest_token
from trainjob.kinds.text_network import PooledEncoder
from trainjob.pretrained.tokenizers import (
    CHARACTERS_PER_TOKEN,
    cut_share,
    load_tokenizer,
    mean_length,
    padded_length,
    save_tokenizer,
)

_CLEANING = Cleaning()


@dataclass(frozen=True)
class CellTexts:
    """Tokenizes the columns of texts of a table, each cell by itself."""

    max_length: int
    """Most tokens of a cell, special ones included."""
    mean_length: float
    """Tokens of a training cell, on average."""
    tokenizer: Tokenizer
    """Set not to pad."""
    tokenizer_config: dict[str, Any]
    """Further settings for transformers."""

    @classmethod
    def fit(cls, spec: PooledEncoder, path: str, texts: Sequence[str]) -> Self:
        """Fits on the cleaned cells of training rows. `path` is that of `spec` in a TrainJob. Raises DataError where
        there is no usable tokenizer."""
        if spec.pretrained is not None:
            DOING.begin("loading the tokenizer")
            tokenizer, config = pretrained_text_tokenizer(spec.pretrained, spec.max_length, f"{path}.pretrained", texts)
            if largest_token(tokenizer) >= MAX_TOKENS:
                raise DataError(f"{path}.pretrained: the tokenizer of {spec.pretrained} numbers tokens beyond 2^24")
        else:
            assert spec.encoder is not None
            DOING.begin("fitting the tokenizer")
            tokenizer, config = train_wordpiece(list(texts), spec.encoder.vocabulary_size, spec.max_length)
        return cls(spec.max_length, mean_length(tokenizer, texts), tokenizer, config)

    @property
    def pad_token_id(self) -> int:
        return pad_token_id(self.tokenizer, self.tokenizer_config)

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.get_vocab_size()

    def tokens(self, columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """The number of tokens of each cell, int64 [n, columns], and the tokens of all cells, row by row, float32 [t]:
        the type of the other values of a prepared row, which is exact below 2^24."""
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        texts = cleaned([cell or "" for row in rows for cell in row], self.max_length)
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]
        lengths = np.array([len(each) for each in tokens], np.int64).reshape(-1, len(columns))
        return lengths, np.fromiter(itertools.chain.from_iterable(tokens), np.float32)

    def prepared(self, values: np.ndarray, columns: Sequence[pa.Array]) -> pa.Array:
        """Prepared rows, list<float32>: the `values` of a row, float32 [n, v], the number of tokens of each of its
        texts, and their tokens."""
        lengths, tokens = self.tokens(columns)
        return as_lists(*with_tokens(values, lengths, tokens))

    def batch(self, lengths: np.ndarray, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """`text_ids` and `text_mask`, int64 [n, columns, `padded_length`], of what `tokens` returned. A cell without
        tokens gets one padding token that the mask keeps."""
        positions = np.arange(padded_length(np.maximum(lengths, 1), self.max_length))
        is_token = positions < lengths[:, :, None]
        ids = np.full(is_token.shape, self.pad_token_id, np.int64)
        ids[is_token] = tokens
        return {"text_ids": ids, "text_mask": (positions < np.maximum(lengths, 1)[:, :, None]).astype(np.int64)}

    @staticmethod
    def shuffled(values: np.ndarray, lengths: np.ndarray, tokens: np.ndarray, text: int, order: np.ndarray) -> Examples:
        """Prepared rows of these parts; the cells of column `text` are those of the rows at the indices `order`."""
        ends = np.cumsum(lengths).reshape(lengths.shape)
        rows = np.repeat(np.arange(len(lengths))[:, None], lengths.shape[1], axis=1)
        rows[:, text] = order
        lengths, ends = (np.take_along_axis(each, rows, axis=0) for each in (lengths, ends))
        cells = [tokens[end - length : end] for end, length in zip(ends.flat, lengths.flat, strict=True)]
        joined, sizes = with_tokens(values, lengths, np.concatenate(cells))
        return Examples(joined, np.concatenate([[0], np.cumsum(sizes)]))

    def cut_share(self, texts: Sequence[str]) -> float:
        """The fraction of these cells that are truncated."""
        return cut_share(self.tokenizer, texts)

    def save(self, folder: Path) -> dict[str, Any]:
        """Also writes, for transformers too, tokenizer.json and tokenizer_config.json."""
        save_tokenizer(self.tokenizer, self.tokenizer_config, folder)
        return {"max_length": self.max_length, "mean_length": self.mean_length}

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> Self:
        """Loads what `save` wrote and returned."""
        return cls(state["max_length"], state["mean_length"], *load_tokenizer(folder, state["max_length"]))


def with_tokens(values: np.ndarray, lengths: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of prepared rows, one row after the other, float32 [v], and the number of each row's values."""
    heads = np.concatenate([values, lengths.astype(np.float32)], axis=1)
    sizes = heads.shape[1] + lengths.sum(axis=1)
    ends = np.cumsum(sizes)
    joined = np.empty(ends[-1] if len(ends) else 0, np.float32)
    is_token = np.ones(len(joined), bool)
    positions = (ends - sizes)[:, None] + np.arange(heads.shape[1])
    is_token[positions] = False
    joined[positions], joined[is_token] = heads, tokens
    return joined, sizes


def cleaned(cells: Sequence[str], max_length: int) -> list[str]:
    """The texts of cells, as far as a network can read them."""
    return [clean(cell[: CHARACTERS_PER_TOKEN * max_length], _CLEANING) for cell in cells]
