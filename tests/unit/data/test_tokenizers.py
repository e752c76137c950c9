"""A tokenizer is the same from the hub, from a folder and in the exported model: the one that AutoTokenizer loads."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.models.auto.tokenization_auto import AutoTokenizer

from trainjob.errors import DataError, Notice
from trainjob.pretrained.hub import from_cache
from trainjob.pretrained.loaded_tokenizer import LoadedTokenizer, save_loaded
from trainjob.pretrained.tokenizer_check import check_export
from trainjob.pretrained.tokenizers import pretrained_tokenizer, save_tokenizer, special_token_id

FIELD = "spec.model.textClassifier.pretrained"

TEXTS = ["In 2024 the 12345 Numbers", "Hello World of Cats", "the quick brown fox", " x\n\n", "", "def f(x): return 1"]
END = "<|endoftext|>"


def byte_level(pre_tokenizer: Any = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[END, "<|im_end|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    return tokenizer


def of_three_digits() -> Tokenizer:
    """Splits texts as Llama 3 does, which no class of transformers for GPT-2 or Qwen2 would."""
    split = pre_tokenizers.Split(Regex(r"\p{N}{1,3}|[^\p{N}]+"), "isolated")
    return byte_level(
        pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    )


def cased_words() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        TEXTS * 20, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


CASES: dict[str, tuple[Callable[[], Tokenizer], dict[str, Any], dict[str, Any], str | None, str | None]] = {
    "a bare download of gpt2": (byte_level, {"model_max_length": 1024}, {"model_type": "gpt2"}, END, None),
    "its class splits otherwise": (
        of_three_digits,
        {"tokenizer_class": "GPT2Tokenizer"},
        {"model_type": "llama"},
        END,
        "GPT2Tokenizer",
    ),
    "its class puts no blank before": (
        lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
        {"tokenizer_class": "GPT2Tokenizer"},
        {"model_type": "gpt2"},
        END,
        "GPT2Tokenizer",
    ),
    "qwen2": (
        of_three_digits,
        {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": END},
        {"model_type": "qwen2"},
        "<|im_end|>",
        "Qwen2Tokenizer",
    ),
    "its file is taken as it is": (
        of_three_digits,
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END},
        {"model_type": "llama"},
        END,
        None,
    ),
    "cased": (cased_words, {"do_lower_case": False}, {"model_type": "bert"}, None, None),
    "cased, which its class does not know": (
        cased_words,
        {"model_max_length": 512},
        {"model_type": "bert"},
        None,
        "BertTokenizer",
    ),
    "truncated at the beginning": (
        cased_words,
        {"do_lower_case": False, "truncation_side": "left"},
        {"model_type": "bert"},
        None,
        None,
    ),
}


def save(folder: Path, tokenizer: Tokenizer, tokenizer_config: dict[str, Any], config: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("case", CASES)
def test_hub_folder_and_export_give_what_transformers_loads(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, tokenizer_config, config, end, noticed = CASES[case]
    folder = tmp_path / "model"
    save(folder, make(), tokenizer_config, config)
    repository = tmp_path / "cache" / "models--some--model"
    shutil.copytree(folder, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

    theirs: Any = AutoTokenizer.from_pretrained(folder)
    expected = theirs(TEXTS, truncation=True, max_length=6)["input_ids"]
    for name in (str(folder), "some/model"):
        if noticed is None:
            with from_cache(name == "some/model"):
                tokenizer, kept = pretrained_tokenizer(name, 6, FIELD, TEXTS)
        else:
            with from_cache(name == "some/model"), pytest.warns(Notice, match=f"as a {noticed}, which tokenizes some"):
                tokenizer, kept = pretrained_tokenizer(name, 6, FIELD, TEXTS)
        assert [encoding.ids for encoding in tokenizer.encode_batch(TEXTS)] == expected
        number = special_token_id(tokenizer, kept, "eos_token")
        assert (number if number is None else tokenizer.id_to_token(number)) == end
        assert str(tmp_path) not in json.dumps(kept)

        exported = tmp_path / f"exported from {name.replace('/', ' ')}"
        exported.mkdir()
        save_tokenizer(tokenizer, kept, exported)
        for with_config in (False, True):  # an adapter's folder has no config.json
            if with_config:
                shutil.copy(folder / "config.json", exported)
            loaded: Any = AutoTokenizer.from_pretrained(exported)
            assert loaded(TEXTS, truncation=True, max_length=6)["input_ids"] == expected
            assert loaded.eos_token == end
            check_export(exported, tokenizer, kept, TEXTS)


def test_an_export_that_transformers_tokenizes_otherwise_is_refused(tmp_path: Path) -> None:
    tokenizer, config = of_three_digits(), {"tokenizer_class": "GPT2Tokenizer", "eos_token": END}
    save(tmp_path / "model", tokenizer, config, {"model_type": "gpt2"})
    said = r"loads its tokenizer as a GPT2Tokenizer with other tokens: of \"In 2024 the 12345 Numbers\", .* instead of "
    with pytest.raises(DataError, match=said):
        check_export(tmp_path / "model", tokenizer, config, TEXTS)
    with pytest.raises(DataError, match=r"with the eos_token <\|endoftext\|> instead of <\|im_end\|>"):
        check_export(tmp_path / "model", tokenizer, config | {"eos_token": "<|im_end|>"}, [])


def test_a_damaged_folder_is_one_clear_error(tmp_path: Path) -> None:
    save(tmp_path / "model", byte_level(), {"tokenizer_class": "AlbertTokenizer"}, {"model_type": "albert"})
    with pytest.raises(DataError, match=r"textClassifier\.pretrained: .*/model has no usable tokenizer"):
        pretrained_tokenizer(str(tmp_path / "model"), None, FIELD)


IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from trainjob.pretrained.loaded_tokenizer import save_loaded
name, folder = sys.argv[1:]
print(json.dumps([save_loaded(name, Path(folder), True), save_loaded(folder + "/none", Path(folder), True)]))
print(*{"torch", "transformers"} & sys.modules.keys())
"""


def test_another_process_loads_the_same_without_pytorch(tmp_path: Path) -> None:
    make, tokenizer_config, config, _, _ = CASES["qwen2"]
    name, here, there = tmp_path / "model", tmp_path / "here", tmp_path / "there"
    save(name, make(), tokenizer_config, config)
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(name), str(there)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    found, imported = done.stdout.splitlines()
    assert imported == ""
    assert [LoadedTokenizer(*each) for each in json.loads(found)] == [
        save_loaded(str(name), here, True),
        save_loaded(f"{there}/none", here, True),
    ]
    for file in sorted(here.iterdir()):
        assert (there / file.name).read_bytes() == file.read_bytes()
