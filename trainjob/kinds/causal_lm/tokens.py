"""Texts to rows of tokens that a language model learns from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import Rows, row_number
from trainjob.errors import DataError, RowError
from trainjob.kinds.causal_lm.chat import ChatTemplate, template_of
from trainjob.kinds.causal_lm.packing import FLAG_BITS, code_matrix, document_starts, pack, unpacked
from trainjob.kinds.causal_lm.piece_tokenizer import PieceTokenizer
from trainjob.kinds.causal_lm.row_layout import Form, Prompt, RowLayout, prompt_text
from trainjob.kinds.inputs.text import text_contents
from trainjob.kinds.inputs.text_columns import TextColumns
from trainjob.kinds.inputs.token_codes import MAX_TOKENS, largest_token, stored
from trainjob.pretrained.tokenizers import load_tokenizer, padded_length, save_tokenizer, special_token_id

PAD, END = "<|pad|>", "<|end|>"
"""Special tokens of tokenizers trained here; END also begins a text."""


@dataclass(frozen=True)
class TokensInput(TextColumns):
    """Tokenizes a row's text, prompt and completion, or conversation. Short ones share a packed row, a long text is
    split into several. The tokenizer truncates nothing."""

    packs: ClassVar[bool] = True
    values_of_token: ClassVar[int] = 1

    form: Form = "text"
    """The kind of content in `columns`."""
    fitted_at: str | None = None
    """The local date and time, in ISO format, that a chat template writes into conversations to be learned or scored:
    tokens must not change when a run continues on another day. None for the current ones."""

    @property
    def layout(self) -> RowLayout:
        return RowLayout(self.form, self.columns)

    @property
    def end_token_id(self) -> int:
        """The token after a text's last token. Raises DataError if the tokenizer has none."""
        return _token_id(self, "eos_token")

    @property
    def begin_token_id(self) -> int:
        """The token that a text's first token is predicted from."""
        return _token_id(self, "bos_token", "eos_token")

    @property
    def pad_token_id(self) -> int:
        """The padding token. Any will do: it is masked, and its prediction is not learned."""
        return _token_id(self, "pad_token", "eos_token")

    @property
    def row_bytes(self) -> int:
        """Memory that a text takes, on average."""
        return round((self.mean_length + 2) * self.value_bytes)

    def contents(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[bytes]:
        """The content by which the split identifies rows: the text."""
        return text_contents(self.layout.raw_texts(table, where))

    def check(self, rows: Rows) -> None:
        """Raises RowError for the first row from which nothing can be learned."""
        if self.form != "text":
            self.transform(rows.table, rows.where)

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """Packed rows of all texts, lists of `value_type`; how many there are depends on the texts' lengths.

        Raises DataError for missing columns, and RowError for undecodable bytes, rows that teach nothing, and where a
        prompt with its completion or a conversation is longer than a row.
        """
        documents = self._documents(table, where)
        offsets = np.concatenate([[0], np.cumsum([len(document) for document in documents], dtype=np.int64)])
        if self.form != "text":
            self._check_lengths(np.diff(offsets), where)
        codes = np.fromiter((code for document in documents for code in document), np.int32, int(offsets[-1]))
        packed, lengths = pack(codes, offsets, self.max_length)
        return as_lists(stored(packed, self.token_type, FLAG_BITS), lengths)

    def prompts(self, prompts: Sequence[Prompt], where: Callable[[int], str] = row_number) -> list[list[int]]:
        """The tokens of each prompt, for the model to continue. A prompt is a text or, for a model that learned
        messages, also a conversation; a text then counts as a user's message. Raises DataError for others."""
        if self.form == "messages":
            texts = [prompt_text(prompt, self._asking_chat, where(row)) for row, prompt in enumerate(prompts)]
            return self._asking_chat.control_tokens.ids(texts, where)
        texts = [_checked_text(prompt, where(row)) for row, prompt in enumerate(prompts)]
        return [[self.begin_token_id, *tokens] for tokens in self._tokens(texts)]

    def _documents(self, table: pa.Table, where: Callable[[int], str]) -> list[list[int]]:
        """The codes of each row."""
        if self.form == "messages":
            return self._chat.control_tokens.codes(self.layout.conversations(table, self._chat, where), where)
        if self.form == "completion":
            rows = PieceTokenizer(self.tokenizer).codes(self.layout.pairs(table, where))
        else:
            rows = self._tokens(self.layout.texts(table, where))
        return [[self.begin_token_id, *codes, self.end_token_id] for codes in rows]

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    @cached_property
    def _chat(self) -> ChatTemplate:
        return ChatTemplate(self.tokenizer_config, self.tokenizer, self.fitted_at)

    @cached_property
    def _asking_chat(self) -> ChatTemplate:
        """The chat template with the date of today, for conversations to answer."""
        return self._chat if self.fitted_at is None else ChatTemplate(self.tokenizer_config, self.tokenizer)

    def _check_lengths(self, lengths: np.ndarray, where: Callable[[int], str]) -> None:
        long = np.flatnonzero(lengths > self.max_length)
        if len(long):
            row, length = int(long[0]), int(lengths[long[0]])
            what = "the conversation has" if self.form == "messages" else "prompt and completion have"
            kind = f"{what} more than the {self.max_length:,} tokens that fit into model.causalLM.maxLength"
            raise RowError(
                f"{where(row)}: {what} {length:,} tokens, but at most {self.max_length:,} fit into "
                "model.causalLM.maxLength. Raise it, shorten the row or leave it out",
                where(row),
                kind,
                f"{length:,} tokens",
                advice="raise it or shorten these rows",
            )

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """input_ids and position_ids, both int64 [n, `padded_length`], and starts, of `document_starts`."""
        codes = code_matrix(examples, padded_length(examples.lengths, self.max_length))
        tokens, positions = unpacked(codes, self.pad_token_id)
        return {"input_ids": tokens, "position_ids": positions, "starts": document_starts(codes)}

    def plain(self, rows: Rows) -> list[str]:
        """The text of each row."""
        return self.layout.raw_texts(rows.table, rows.where)

    def most_plain_rows(self, width: int) -> int:
        """Returns None: no baseline learns from tokens."""
        return 0

    def cut_share(self, texts: Sequence[str]) -> None:
        """None: long texts are split into several rows, not truncated."""

    def excerpts(self, rows: Rows, mistakes: np.ndarray) -> dict[str, pa.Array]:
        """No row has a prediction of its own."""
        return {}

    def save(self, folder: Path) -> dict[str, Any]:
        """Also writes, for transformers too, tokenizer.json and tokenizer_config.json."""
        save_tokenizer(self.tokenizer, self.tokenizer_config, folder)
        return {
            "columns": self.columns,
            "max_length": self.max_length,
            "mean_length": self.mean_length,
            "form": self.form,
            "token_type": self.token_type,
        } | ({"fitted_at": self.fitted_at} if self.fitted_at is not None else {})

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> "TokensInput":
        """The input that was saved with these fields of preprocessor.json."""
        tokenizer, config = load_tokenizer(folder, None)
        return cls(**state, tokenizer=tokenizer, tokenizer_config=config)


def _checked_text(prompt: Prompt, where: str) -> str:
    if not isinstance(prompt, str):
        raise DataError(f"{where}: the model continues texts, and cannot take a {type(prompt).__name__}")
    return prompt


def check_tokenizer(preprocessor: TokensInput, field: str) -> None:
    """Raises DataError for a tokenizer that cannot be used; `field` is where it was named."""
    try:
        _ = preprocessor.end_token_id
        if preprocessor.form == "messages":
            template_of(preprocessor.tokenizer_config)
    except DataError as error:
        raise DataError(f"{field}: {error}") from None
    if (largest := largest_token(preprocessor.tokenizer)) >= MAX_TOKENS:
        raise DataError(f"{field}: the tokenizer has the token {largest:,}; numbers below {MAX_TOKENS:,} fit")


def _token_id(preprocessor: TokensInput, *names: str) -> int:
    """The id of the first of these special tokens that exists."""
    number = special_token_id(preprocessor.tokenizer, preprocessor.tokenizer_config, *names)
    if number is None:
        raise DataError(f"the tokenizer names no {names[-1]} (in tokenizer_config.json), which marks the end of a text")
    return number


def train_byte_bpe(texts: Iterable[str], vocabulary_size: int, max_length: int) -> tuple[Tokenizer, dict[str, Any]]:
    """A byte-level BPE tokenizer of at most `vocabulary_size` tokens, which has tokens for any text, and its
    configuration for transformers. The result depends only on the arguments."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=2,
        special_tokens=[PAD, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    end = (END, tokenizer.token_to_id(END))
    tokenizer.post_processor = processors.TemplateProcessing(f"{END} $A", f"{END} $A {END} $B", [end])
    special = {"pad_token": PAD, "bos_token": END, "eos_token": END}
    return tokenizer, {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **special}
