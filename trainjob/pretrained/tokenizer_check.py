"""Compares the tokens of training texts between two ways of loading the same tokenizer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from trainjob.errors import DataError, notify

SPECIAL = ("bos_token", "eos_token", "pad_token")


def compared_texts(texts: Sequence[str]) -> list[str]:
    """The beginnings of some texts, enough to show whether two tokenizers are equal."""
    return [text[:1_000] for text in texts[:100]]


def note_other_tokens(name: str, field: str, kind: str, loaded: Tokenizer, texts: Sequence[str]) -> None:
    """Gives a Notice if the tokenizer.json of the model `name` tokenizes the texts differently from `loaded`, which
    transformers' class `kind` made from it: some classes read only the vocabulary of that file."""
    from huggingface_hub import try_to_load_from_cache

    file = Path(name) / "tokenizer.json" if Path(name).is_dir() else try_to_load_from_cache(name, "tokenizer.json")
    if not isinstance(file, str | Path) or not Path(file).is_file():
        return
    written, texts = Tokenizer.from_file(str(file)), compared_texts(texts)
    written.no_padding()
    if loaded.truncation is None:
        written.no_truncation()
    else:
        written.enable_truncation(**loaded.truncation)
    for text, ours, theirs in zip(texts, loaded.encode_batch(texts), written.encode_batch(texts), strict=True):
        if ours.ids != theirs.ids:
            notify(
                f"{field}: transformers loads the tokenizer of {name} as a {kind}, which tokenizes some texts "
                f"differently from its tokenizer.json: {_difference(text, ours.tokens, theirs.tokens)}. The model "
                "trains on the former, since transformers gives it these. If the latter are right, copy the model "
                "into a folder, and set tokenizer_class to PreTrainedTokenizerFast in the tokenizer_config.json there"
            )
            return


def check_export(folder: Path, tokenizer: Tokenizer, config: dict[str, Any], texts: Sequence[Any]) -> None:
    """Raises DataError if AutoTokenizer, given the files of an exported model in `folder`, tokenizes the texts or pairs
    of texts differently from `tokenizer`, or begins, ends or pads texts with other tokens than those in `config`."""
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    loaded: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    problem = _other_tokens(loaded, tokenizer, list(texts)) or _other_special_token(loaded, config)
    if problem:
        raise DataError(
            f"nothing was trained, because transformers would tokenize differently for the trained model than training "
            f"does: AutoTokenizer loads its tokenizer as a {type(loaded).__name__} {problem}. Set tokenizer_class to "
            "PreTrainedTokenizerFast in the tokenizer_config.json of the pretrained model, or use another model"
        )


def _other_tokens(loaded: Any, tokenizer: Tokenizer, texts: list[Any]) -> str | None:
    cut = tokenizer.truncation
    options = {"truncation": True, "max_length": cut["max_length"]} if cut else {}
    found = loaded(texts, verbose=False, **options)["input_ids"] if texts else []
    for text, ids, ours in zip(texts, found, tokenizer.encode_batch(texts), strict=True):
        if ids != ours.ids:
            shown = text if isinstance(text, str) else " | ".join(text)
            return f"with other tokens: {_difference(shown, loaded.convert_ids_to_tokens(ids), ours.tokens)}"
    return None


def _other_special_token(loaded: Any, config: dict[str, Any]) -> str | None:
    for name in SPECIAL:
        token = config.get(name)
        text = token["content"] if isinstance(token, dict) else token
        if text is not None and getattr(loaded, name) != text:
            return f"with the {name} {getattr(loaded, name)} instead of {text}"
    return None


def _difference(text: str, some: Sequence[str], others: Sequence[str]) -> str:
    """The first difference between the tokens of a text, in words."""
    pairs = zip(some, others, strict=False)
    first = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(some), len(others)))
    shown, other = (" ".join(tokens[max(0, first - 1) : first + 4]) or "none" for tokens in (some, others))
    return f"of {json.dumps(text[:80], ensure_ascii=False)}, {shown} instead of {other}"
