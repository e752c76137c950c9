"""Tokenizers that put something before every text, and others of their kinds."""

import json
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = ["How many rows? Two rows.", "1+1 is 2 rows and 2+2 is 4. It is 4.", "user assistant system"] * 9
BYTES = [f"<0x{number:02X}>" for number in range(256)]
KINDS = ("prepend", "always", "first", "never", "replace", "byteLevel", "trimmed", "bert")
CONTROL = ("<|user|>", "<|assistant|>", "<|system|>", "<|tool|>", "<|end|>")


def tokenizer_of(kind: str, control: dict[str, Any] | None = None) -> tuple[Tokenizer, dict[str, Any]]:
    """A tokenizer of a kind, and its configuration without a template: Llama 2's older form (prepend), sentencepiece's
    three ways (always, first, never), Gemma's (replace), GPT-2's with a blank before words (byteLevel), and with it
    left out of the tokens' places (trimmed), BERT's. `control` are settings of the control tokens."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    trainer: Any = trainers.BpeTrainer
    if kind == "bert":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer
    elif kind in ("byteLevel", "trimmed"):
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    elif kind in ("prepend", "replace"):
        blanks = normalizers.Replace(" ", "▁")
        tokenizer.normalizer = blanks if kind == "replace" else normalizers.Sequence([normalizers.Prepend("▁"), blanks])
        tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind, split=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind in ("byteLevel", "trimmed") else []
    special = ["<unk>", "<s>", "</s>", *BYTES]
    tokenizer.train_from_iterator(
        TEXTS, trainer(vocab_size=640, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    if kind in ("prepend", "replace"):
        tokenizer.pre_tokenizer = None
    tokenizer = without_byte_tokens(tokenizer)
    settings = {"special": True, "normalized": False} | (control or {})
    tokenizer.add_tokens([AddedToken(token, **settings) for token in CONTROL])
    ends: list[Any] = [processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 1)])]
    if kind == "trimmed":
        ends.insert(0, processors.ByteLevel(trim_offsets=True))
    tokenizer.post_processor = processors.Sequence(ends)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return tokenizer, {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 256} | names


def without_byte_tokens(tokenizer: Tokenizer) -> Tokenizer:
    """Keeps the tokens for single bytes in the model alone, and not among the added tokens."""
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(state))
