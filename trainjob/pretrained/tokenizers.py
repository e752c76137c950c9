"""Loads and saves tokenizers, with settings and statistics that all text models need."""

import json
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from trainjob.errors import DataError
from trainjob.pretrained.hub import is_cached_only
from trainjob.pretrained.loaded_tokenizer import save_loaded
from trainjob.pretrained.tokenizer_check import note_other_tokens
from trainjob.scratch import scratch_folder

LENGTH_ROWS = 1_000
TOKENIZER_ROWS = 100_000
CHARACTERS_PER_TOKEN = 16
"""Characters per token of `maxLength`; longer texts are cut before the tokenizer is trained."""
TEMPLATE, TEMPLATE_FILE = "chat_template", "chat_template.jinja"
INPUT_NAMES = "model_input_names"
"""The key of a configuration with the names of the network's inputs."""
_OF_LOADING = ("is_local", "local_files_only", "backend")
"""Keys that AutoTokenizer adds to a configuration about how it was loaded."""


def load_tokenizer(folder: Path, max_length: int | None) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer in a folder with tokenizer.json, and its configuration for transformers."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"{folder / 'tokenizer.json'} is not a valid tokenizer: {error}") from None
    file, template = folder / "tokenizer_config.json", folder / TEMPLATE_FILE
    try:
        config = json.loads(file.read_bytes()) if file.exists() else {}
    except ValueError as error:
        raise DataError(f"{file} is damaged: {error}") from None
    if template.exists():
        config[TEMPLATE] = template.read_text()
    return set_truncation(tokenizer, max_length, config.get("truncation_side", "right")), config


def pretrained_tokenizer(
    name: str, max_length: int | None, field: str, texts: Sequence[str] = ()
) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer that transformers' AutoTokenizer loads for a model on the Hugging Face hub or in a folder, and its
    configuration for transformers. `field` is where the model was named. The tokenizer truncates texts to `max_length`
    tokens where that is given. Gives a Notice where the model's own tokenizer.json makes other tokens of `texts`.

    Raises DataError where there is no tokenizer, or only a slow one.
    """
    cached_only = is_cached_only(name, field) or Path(name).is_dir()
    with scratch_folder() as folder:
        found = save_loaded(name, folder, cached_only)
        if found.problem is not None:
            raise DataError(f"{field}: {name} {found.problem}")
        loaded, config = load_tokenizer(folder, max_length)
    for setting in _OF_LOADING:
        config.pop(setting, None)
    config[INPUT_NAMES] = found.input_names
    if config.get("tokenizer_class") == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"  # the same, under the name that transformers 4 has, too
    note_other_tokens(name, field, found.kind, loaded, texts)
    return loaded, config


def save_tokenizer(tokenizer: Tokenizer, config: dict[str, Any], folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json, also for transformers."""
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    tokenizer.save(str(folder / "tokenizer.json"))


def special_token_id(tokenizer: Tokenizer, config: dict[str, Any], *names: str) -> int | None:
    """The id of the first of the special tokens with these names, such as `pad_token`, that the tokenizer has."""
    for name in names:
        token = config.get(name)
        text = token["content"] if isinstance(token, dict) else token
        if text is not None and (number := tokenizer.token_to_id(text)) is not None:
            return number
    return None


def mean_length(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """The mean number of tokens in the first LENGTH_ROWS texts."""
    return float(np.mean([len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts[:LENGTH_ROWS])]))


def cut_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """The fraction of the first LENGTH_ROWS texts that the tokenizer truncates."""
    return float(np.mean([bool(encoding.overflowing) for encoding in tokenizer.encode_batch_fast(texts[:LENGTH_ROWS])]))


def padded_length(lengths: np.ndarray, most: int) -> int:
    """The padded length of rows of these lengths: the longest, rounded up to a `length_multiple` unless that exceeds
    `most`."""
    longest, multiple = int(lengths.max(initial=0)), length_multiple()
    return min(ceil(longest / multiple) * multiple, max(most, longest))


def length_multiple() -> int:
    """More than 1 where libraries compile code for every new length: on GPUs, and on CPUs with bfloat16 units."""
    import torch

    from trainjob.precision import multiplies_bfloat16

    return 8 if torch.cuda.is_available() or multiplies_bfloat16(torch.device("cpu")) else 1


def set_truncation(tokenizer: Tokenizer, max_length: int | None, side: str = "right") -> Tokenizer:
    """Sets the tokenizer not to pad, and to truncate texts on that side to `max_length` tokens, if given."""
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length, direction=side)
    tokenizer.no_padding()
    return tokenizer
