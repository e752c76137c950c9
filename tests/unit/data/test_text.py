import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer

from preprocessors import input_of, text_classifier
from trainjob.api import Cleaning
from trainjob.data import Examples, load_preprocessor
from trainjob.errors import DataError
from trainjob.kinds.inputs.text import SPECIAL_TOKENS, TextInput, train_wordpiece
from trainjob.kinds.targets.one_class import OneClass
from trainjob.pretrained.tokenizers import load_tokenizer, pretrained_tokenizer

FIELD = "spec.model.textClassifier.pretrained"

SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ra", "so", "té", "漢", "→", "x_y", "!"]


def texts(count: int = 400, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(120)]
    return [" ".join(chance.choices(words, k=chance.randint(1, 12))) for _ in range(count)]


def preprocessor(columns: tuple[str, ...] = ("text",), max_length: int = 12) -> TextInput:
    tokenizer, config = train_wordpiece(texts(), 300, max_length)
    return TextInput([*columns], max_length, 9.5, tokenizer, config, Cleaning(lowercase=True))


def saved(texts: TextInput, folder: Path) -> None:
    text_classifier(texts, ["a", "b"], [3, 4]).save(folder)


def examples(of: TextInput, some: list[str]) -> Examples:
    values = of.transform(pa.table({"text": some}))
    return Examples.from_table(pa.table({"values": values, "label": pa.array([0] * len(some), pa.int64())}))


def test_tokens_are_cleaned_cut_and_framed() -> None:
    pre = preprocessor()
    rows = pre.transform(pa.table({"text": ["KALO\x07  mi", "ka " * 100, "", "q"]})).to_pylist()
    tokens = [[pre.tokenizer.id_to_token(token) or "" for token in row] for row in rows]
    assert [row[0] for row in tokens] == ["[CLS]"] * 4
    assert [row[-1] for row in tokens] == ["[SEP]"] * 4
    assert "".join(tokens[0][1:-1]).replace("##", "") == "kalomi"
    assert len(tokens[1]) == 12
    assert tokens[2] == ["[CLS]", "[SEP]"]
    assert tokens[3] == ["[CLS]", "[UNK]", "[SEP]"]


def test_a_word_of_more_than_a_hundred_characters_is_known() -> None:
    [row] = preprocessor(max_length=200).transform(pa.table({"text": ["ka" * 150]})).to_pylist()
    tokenizer = preprocessor().tokenizer
    tokens = [tokenizer.id_to_token(token) or "" for token in row[1:-1]]
    assert "".join(token.removeprefix("##") for token in tokens) == "ka" * 150


@pytest.mark.parametrize(("has_bfloat16", "width"), [(True, 8), (False, 6)])
def test_a_batch_is_padded_to_its_longest_row_and_for_bfloat16_in_multiples_of_8(
    has_bfloat16: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": has_bfloat16})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pre = preprocessor()
    batch = examples(pre, ["ka", "", "ka lo mi nu"])
    inputs = pre.batch(batch)
    assert inputs["input_ids"].dtype == inputs["attention_mask"].dtype == np.int64
    assert batch.lengths.tolist() == [3, 2, 6]
    assert inputs["input_ids"].shape == inputs["attention_mask"].shape == (3, width)
    for row, length in enumerate(batch.lengths):
        start = batch.offsets[row]
        assert inputs["input_ids"][row, :length].tolist() == batch.values[start : start + length].tolist()
        assert set(inputs["input_ids"][row, length:]) <= {pre.pad_token_id}
        assert inputs["attention_mask"][row].tolist() == [1] * length + [0] * (width - length)


def test_padding_goes_no_further_than_the_longest_text_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    pre = preprocessor()
    longest = examples(pre, ["ka " * 50])
    assert longest.lengths.tolist() == [pre.max_length]
    assert pre.batch(longest)["input_ids"].shape == (1, pre.max_length)


def test_no_rows_give_no_inputs() -> None:
    pre = preprocessor()
    assert pre.batch(examples(pre, []))["input_ids"].shape == (0, 0)


def test_text_columns_are_joined() -> None:
    pre = preprocessor(("title", "body"))
    joined = pre.transform(pa.table({"body": ["lo", None, ""], "title": ["ka", "ka", None]}))
    alone = preprocessor().transform(pa.table({"text": ["ka lo", "ka", ""]}))
    assert joined.to_pylist() == alone.to_pylist()


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match='no column "text"; it has txt; did you mean txt'):
        preprocessor().transform(pa.table({"txt": ["ka"]}))


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    pre = preprocessor()
    saved(pre, tmp_path)
    loaded = input_of(load_preprocessor(tmp_path), TextInput)
    assert loaded.tokenizer.to_str() == pre.tokenizer.to_str()
    assert load_preprocessor(tmp_path).target == OneClass(["a", "b"], [3, 4])
    for field in ("columns", "cleaning", "max_length", "mean_length", "tokenizer_config"):
        assert getattr(loaded, field) == getattr(pre, field)
    assert (loaded.pad_token_id, loaded.vocabulary_size) == (pre.pad_token_id, pre.vocabulary_size)


def test_transformers_tokenizes_alike(tmp_path: Path) -> None:
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    pre = preprocessor()
    saved(pre, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    some = ["ka lo → x_y!", "", "ka " * 100]
    encoded = theirs(some, truncation=True, padding=True, return_tensors="np")  # pyrefly: ignore[not-callable]
    inputs = pre.batch(examples(pre, some))
    assert np.array_equal(encoded["input_ids"], inputs["input_ids"])
    assert np.array_equal(encoded["attention_mask"], inputs["attention_mask"])
    assert theirs.model_max_length == 12  # pyrefly: ignore[missing-attribute]
    assert {name: getattr(theirs, name) for name in SPECIAL_TOKENS} == SPECIAL_TOKENS


def test_training_a_tokenizer_twice_gives_the_same() -> None:
    """In several processes: WordPieceTrainer's own numbering follows hash maps that each process seeds differently."""
    program = "from test_text import texts, train_wordpiece; print(train_wordpiece(texts(), 300, 12)[0].to_str())"
    environment = {"PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=120)
        for _ in range(3)
    ]
    here = [train_wordpiece(texts(), 300, 12)[0].to_str() for _ in range(5)]
    assert {run.stdout.strip() for run in runs} | set(here) == {here[0]}


def test_the_order_of_texts_does_not_change_a_tokenizer() -> None:
    forwards, backwards = (train_wordpiece(order, 300, 12)[0] for order in (texts(), texts()[::-1]))
    assert forwards.to_str() == backwards.to_str()


@pytest.mark.parametrize("size", [100, 125, 150])
def test_a_vocabulary_is_no_larger_than_asked(size: int) -> None:
    tokenizer, _ = train_wordpiece([*texts(), "".join(map(chr, range(0x4E00, 0x5200)))], size, 12)
    assert tokenizer.get_vocab_size() == size
    assert [tokenizer.id_to_token(number) for number in range(5)] == list(SPECIAL_TOKENS.values())


def test_special_tokens_in_a_text_are_no_marks_of_ours() -> None:
    tokenizer, _ = train_wordpiece([*texts(), "##ka ##lo"], 300, 12)
    assert "##ka" not in tokenizer.encode("ka ##ka").tokens[1:2]
    assert tokenizer.encode("##").tokens[1] != "##"


def test_a_pretrained_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    pre = preprocessor()
    saved(pre, tmp_path)
    tokenizer, config = pretrained_tokenizer(str(tmp_path), 5, FIELD)
    assert tokenizer.get_vocab() == pre.tokenizer.get_vocab()
    assert len(tokenizer.encode("ka " * 100)) == 5
    assert pre.tokenizer_config.items() <= config.items()


def test_a_pretrained_folder_with_a_slow_tokenizer_is_converted(tmp_path: Path) -> None:
    pre = preprocessor()
    tokens = sorted(pre.tokenizer.get_vocab(), key=pre.tokenizer.get_vocab().__getitem__)
    (tmp_path / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    tokenizer, _ = pretrained_tokenizer(str(tmp_path), 12, FIELD)
    assert tokenizer.encode("KA lo").tokens == ["[CLS]", *tokenizer.encode("ka lo").tokens[1:-1], "[SEP]"]
    assert tokenizer.get_vocab() == pre.tokenizer.get_vocab()


def test_a_pretrained_encoder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"textClassifier\.pretrained: there is no folder .*/absent"):
        pretrained_tokenizer(str(tmp_path / "absent"), 12, FIELD)


def test_a_damaged_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(DataError, match=r"tokenizer\.json is not a valid tokenizer"):
        load_tokenizer(tmp_path, 12)
    saved(preprocessor(), tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(DataError, match=r"tokenizer_config\.json is damaged: "):
        load_preprocessor(tmp_path)


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    pre = preprocessor()
    saved(pre, tmp_path)
    shutil.copy(tmp_path / "tokenizer.json", tmp_path / "copy.json")
    state = (tmp_path / "tokenizer.json").read_text().replace("[PAD]", "[NIL]")
    (tmp_path / "tokenizer.json").write_text(state)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    loaded = input_of(load_preprocessor(tmp_path), TextInput)
    with pytest.raises(DataError, match="has no padding token"):
        _ = loaded.pad_token_id
    assert Tokenizer.from_file(str(tmp_path / "copy.json")).token_to_id("[PAD]") == pre.pad_token_id


def test_a_folder_without_a_preprocessor(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no preprocessor\.json"):
        load_preprocessor(tmp_path)


def test_a_pretrained_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    sizes = {"vocab_size": 99, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **sizes}))
    with pytest.raises(DataError, match=r"textClassifier\.pretrained: .* has no tokenizer: save it there, too"):
        pretrained_tokenizer(str(tmp_path), 16, FIELD)


def test_a_pretrained_encoder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    said = {
        "/nowhere/encoder": "there is no folder /nowhere/encoder",
        "./encoder": "./encoder is neither a folder nor a name on the Hugging Face hub",
        "some/encoder": "http://127.0.0.1:9 cannot be reached to load some/encoder",
    }
    script = (
        "from trainjob.pretrained.tokenizers import pretrained_tokenizer\nfrom trainjob.errors import DataError\n"
        f"for name in {list(said)}:\n"
        f"    try: pretrained_tokenizer(name, 16, {FIELD!r})\n    except DataError as error: print(error)"
    )
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    for line, expected in zip(done.stdout.splitlines(), said.values(), strict=True):
        assert line.startswith(f"spec.model.textClassifier.pretrained: {expected}")
    assert done.stderr == ""
