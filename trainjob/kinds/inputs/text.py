"""Texts to tokens."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from trainjob.api import Cleaning
from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import Rows, as_text, check_columns, row_number
from trainjob.errors import DataError
from trainjob.kinds.inputs.cleaning import clean
from trainjob.kinds.inputs.python_rows import table_of_texts
from trainjob.kinds.inputs.questions import Question, text_question
from trainjob.kinds.inputs.text_columns import TextColumns
from trainjob.kinds.inputs.token_codes import FLAG_BIT, MAX_TOKENS, codes_of, read_codes, stored
from trainjob.pretrained.tokenizer_check import check_export
from trainjob.pretrained.tokenizers import (
    CHARACTERS_PER_TOKEN,
    cut_share,
    load_tokenizer,
    padded_length,
    pretrained_tokenizer,
    save_tokenizer,
    set_truncation,
    special_token_id,
)

SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_MAX_CHARACTERS = 1000
_MAX_WORD_CHARACTERS = 1000
"""The most characters of a word; a longer one is a single unknown token. WordPiece's default is 100, which sentences in
scripts without blanks exceed."""
EXCERPT_CHARACTERS = 1000
"""Characters of a text that are kept beside its prediction."""
EXCERPTS = ("text", "text_pair", "text_negative")
"""The columns that keep the first, second and third text of a row."""

PLAIN_TOKENS = 2_000_000
"""Tokens of the texts that a baseline learns from where there are at most FEW_OUTPUTS; with more of them, fewer."""
FEW_OUTPUTS = 30


@dataclass(frozen=True)
class TextInput(TextColumns):
    """Joins a row's text columns, cleans the text and tokenizes it. The tokenizer cuts at `max_length`.

    A row may be a pair of texts, from `columns` and `pair`. The tokenizer separates them, and cuts the longer one. The
    cleaned texts of a pair, which have no line breaks, are handed around as one text of two lines.
    """

    packs: ClassVar[bool] = False
    values_of_token: ClassVar[int] = 1
    encodes_pairs: ClassVar[bool] = True
    """Whether the tokenizer reads both texts of a pair together."""

    cleaning: Cleaning
    pair: list[str] = field(default_factory=list[str])
    """The columns among `columns` with the second text; empty if a row has one text."""
    has_types: bool = False
    """Whether the network gets, as `token_type_ids`, which tokens are of the second text."""

    @property
    def groups(self) -> list[list[str]]:
        """The columns of each text of a row."""
        return [names for names in ([name for name in self.columns if name not in self.pair], self.pair) if names]

    @property
    def pad_token_id(self) -> int:
        return pad_token_id(self.tokenizer, self.tokenizer_config)

    @cached_property
    def flag_bits(self) -> int:
        """Bits for the types of tokens. Some tokenizers also give their special tokens types, of 2 and more."""
        return max(self.tokenizer.encode("a", "b").type_ids).bit_length() if self.has_types else 0

    @property
    def row_bytes(self) -> int:
        """Memory that a prepared row takes, on average."""
        return round(self.mean_length * self.value_bytes) + 2 * np.int64().itemsize

    def contents(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[bytes]:
        """The content by which the split identifies rows: the raw text."""
        return text_contents(list(map("\n".join, self._texts(table, where))))

    def check(self, rows: Rows) -> None:
        """Any text can be used."""

    def table(self, rows: Sequence[Any] | np.ndarray, where: Callable[[int], str]) -> pa.Table:
        return table_of_texts(rows, self.columns, where, self.pair)

    def question(self, most_rows: int) -> type[Question]:
        return text_question(self.columns, most_rows, self.pair)

    def check_export(self, folder: Path, texts: Sequence[str]) -> None:
        check_export(folder, self.tokenizer, self.tokenizer_config, self.encodable(texts))

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """The codes of each row, lists of `value_type`; a flag is the type of a token. Raises DataError for missing
        columns and undecodable bytes."""
        texts = [cleaned(each, self.cleaning) for each in self._texts(table, where)]
        encodings = self.tokenizer.encode_batch_fast(self.encodable(texts))
        tokens = [encoding.ids for encoding in encodings]
        codes = codes_of(itertools.chain.from_iterable(tokens))
        if self.has_types:
            types = itertools.chain.from_iterable(encoding.type_ids for encoding in encodings)
            codes |= np.fromiter(types, np.int32) << FLAG_BIT
        lengths = np.array([len(row) for row in tokens], np.int64)
        return as_lists(stored(codes, self.token_type, self.flag_bits), lengths)

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """input_ids, attention_mask and, with `has_types`, token_type_ids, all int64 [n, `padded_length`]. A text
        without tokens, such as an empty one for a decoder, gets one padding token that the mask keeps."""
        lengths = np.maximum(examples.lengths, 1)
        positions = np.arange(padded_length(lengths, self.max_length))
        mask, is_token = positions < lengths[:, None], positions < examples.lengths[:, None]
        input_ids, codes = np.full(mask.shape, self.pad_token_id, np.int64), read_codes(examples.values, self.flag_bits)
        input_ids[is_token] = codes & (MAX_TOKENS - 1)
        inputs = {"input_ids": input_ids, "attention_mask": mask.astype(np.int64)}
        if self.has_types:
            inputs["token_type_ids"] = np.zeros_like(input_ids)
            inputs["token_type_ids"][is_token] = codes >> FLAG_BIT
        return inputs

    def plain(self, rows: Rows) -> list[str]:
        """The cleaned text of each row, as far as the network can read it."""
        longest = CHARACTERS_PER_TOKEN * self.max_length
        return [cleaned(each, self.cleaning, longest) for each in self._texts(rows.table, rows.where)]

    def most_plain_rows(self, width: int) -> int:
        tokens = PLAIN_TOKENS * FEW_OUTPUTS // max(width, FEW_OUTPUTS)
        return int(tokens / self.mean_length)

    def cut_share(self, texts: Sequence[str]) -> float | None:
        return cut_share(self.tokenizer, self.encodable(texts))

    def encodable(self, texts: Sequence[str]) -> list[Any]:
        """Cleaned texts as the tokenizer takes them."""
        return encodable(texts, bool(self.pair))

    def excerpts(self, rows: Rows, mistakes: np.ndarray) -> dict[str, pa.Array]:
        """Each text of a row has a column of its own."""
        names = EXCERPTS[: len(self.groups)]
        columns = zip(*self._texts(rows.table, rows.where), strict=True)
        cut = ([text[:EXCERPT_CHARACTERS] for text in texts] for texts in columns)
        return {name: pa.array(texts, pa.string()) for name, texts in zip(names, cut, strict=True)}

    def save(self, folder: Path) -> dict[str, Any]:
        """Also writes, for transformers too, tokenizer.json and tokenizer_config.json."""
        save_tokenizer(self.tokenizer, self.tokenizer_config, folder)
        return {
            "columns": self.columns,
            "pair": self.pair,
            "has_types": self.has_types,
            "cleaning": self.cleaning.model_dump(by_alias=True),
            "max_length": self.max_length,
            "mean_length": self.mean_length,
            "token_type": self.token_type,
        }

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> Self:
        """The input that was saved with these fields of preprocessor.json."""
        tokenizer, config = load_tokenizer(folder, state["max_length"])
        cleaning = Cleaning.model_validate(state["cleaning"])
        return cls(**state | {"cleaning": cleaning}, tokenizer=tokenizer, tokenizer_config=config)

    def _texts(self, table: pa.Table, where: Callable[[int], str]) -> list[tuple[str, ...]]:
        return row_texts(table, self.groups, where)


def joined_texts(table: pa.Table, columns: Sequence[str], where: Callable[[int], str] = row_number) -> list[str]:
    """The text columns of each row joined by a blank; null counts as empty."""
    check_columns(columns, table.column_names, "the table")
    texts = [as_text(table[name], name, where).to_pylist() for name in columns]
    return [" ".join(filter(None, row)) for row in zip(*texts, strict=True)]


def row_texts(table: pa.Table, groups: Sequence[Sequence[str]], where: Callable[[int], str]) -> list[tuple[str, ...]]:
    """The texts of each row: one for each of the groups of columns."""
    return list(zip(*(joined_texts(table, names, where) for names in groups), strict=True))


def cleaned(texts: Sequence[str], cleaning: Cleaning, longest: int | None = None) -> str:
    """The first characters of each text of a row, cleaned: a line for each."""
    return "\n".join([clean(text[:longest], cleaning) for text in texts])


def encodable(texts: Sequence[str], are_pairs: bool) -> list[Any]:
    """Cleaned texts as a tokenizer takes them."""
    return [text.partition("\n")[::2] for text in texts] if are_pairs else list(texts)


def separates(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer puts tokens between the two texts of a pair."""
    first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in ("a", "b"))
    ids, together = tokenizer.encode("a", "b").ids, [*first, *second]
    return not any(ids[start : start + len(together)] == together for start in range(len(ids)))


def text_contents(texts: list[str]) -> list[bytes]:
    return [text.encode() for text in texts]


def pretrained_text_tokenizer(
    name: str, max_length: int, field: str, texts: Sequence[str]
) -> tuple[Tokenizer, dict[str, Any]]:
    """Like `pretrained_tokenizer`, but with a padding token: a decoder's tokenizer without one pads with its eos_token.
    Raises DataError if it has neither."""
    tokenizer, config = pretrained_tokenizer(name, max_length, field, texts)
    if special_token_id(tokenizer, config, "pad_token") is None and config.get("eos_token") is not None:
        config["pad_token"] = config["eos_token"]
    try:
        pad_token_id(tokenizer, config)
    except DataError as error:
        raise DataError(f"{field}: {name}: {error}") from None
    return tokenizer, config


def pad_token_id(tokenizer: Tokenizer, config: dict[str, Any]) -> int:
    """Raises DataError where the tokenizer has no padding token."""
    number = special_token_id(tokenizer, config, "pad_token")
    for usual in ("[PAD]", "<pad>"):
        number = tokenizer.token_to_id(usual) if number is None else number
    if number is None:
        raise DataError("the tokenizer has no padding token: name a pad_token in tokenizer_config.json")
    return number


def train_wordpiece(texts: list[str], vocabulary_size: int, max_length: int) -> tuple[Tokenizer, dict[str, Any]]:
    """A BERT-style WordPiece tokenizer of at most `vocabulary_size` tokens; depends on nothing but its arguments.

    WordPieceTrainer numbers the characters inside words in the random order of a hash map and breaks ties by these
    numbers, so two trainings differ. Here the characters are numbered beforehand, as if they were special tokens.
    """
    tokenizer = _wordpiece({})
    most = min(_MAX_CHARACTERS, (vocabulary_size - len(SPECIAL_TOKENS)) // 3)
    alphabet, inner = _alphabet(texts, tokenizer, most)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=2,
        special_tokens=[*SPECIAL_TOKENS.values(), *(f"##{character}" for character in inner)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = tokenizer.get_vocab()

    trained = _wordpiece(vocabulary)
    trained.add_special_tokens(list(SPECIAL_TOKENS.values()))
    ends = [(name, vocabulary[name]) for name in (SPECIAL_TOKENS["cls_token"], SPECIAL_TOKENS["sep_token"])]
    trained.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **SPECIAL_TOKENS}
    return set_truncation(trained, max_length), config


def _wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    unknown = SPECIAL_TOKENS["unk_token"]
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=_MAX_WORD_CHARACTERS)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _alphabet(texts: list[str], tokenizer: Tokenizer, most: int) -> tuple[list[str], list[str]]:
    """The most frequent characters, and those that occur inside words; both sorted."""
    words: Counter[str] = Counter()
    for text in texts:
        words.update(tokenizer.normalizer.normalize_str(text).split())
    counts: Counter[str] = Counter()
    inner: set[str] = set()
    for word, count in words.items():
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(word):
            inner.update(piece[1:])
            for character in piece:
                counts[character] += count
    alphabet = sorted(sorted(counts, key=lambda character: (-counts[character], character))[:most])
    return alphabet, [character for character in alphabet if character in inner]
