"""Rows store tokens in 16 bits where the vocabulary allows, and batches are the same as with 32."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from preprocessors import input_of, language_model, text_classifier
from trainjob.api import Cleaning
from trainjob.data import Examples, load_preprocessor
from trainjob.errors import DataError
from trainjob.kinds.causal_lm.packing import label_matrix
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.kinds.inputs.separate_texts import SeparateTexts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.inputs.token_codes import FLAG_BIT, codes_of, read_codes, stored, token_type_of

WORDS = ["[PAD]", "[SEP]", "[CLS]", "[UNK]"]


def tokenizer_of(largest: int) -> Tokenizer:
    """Its word `last` has the largest number."""
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(WORDS)} | {"last": largest}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def text_input(tokenizer: Tokenizer, **fields: object) -> TextInput:
    return TextInput(["text"], 16, 4.0, tokenizer, {"pad_token": "[PAD]"}, Cleaning(), **fields)  # pyrefly: ignore


@pytest.mark.parametrize(
    ("largest", "flag_bits", "expected"),
    [
        (65_535, 0, "uint16"),
        (65_536, 0, "int32"),
        (32_767, 1, "uint16"),
        (32_768, 1, "int32"),
        (16_383, 2, "uint16"),
        (16_384, 2, "int32"),
    ],
)
def test_codes_take_16_bits_where_the_largest_token_leaves_room_for_the_flags(
    largest: int, flag_bits: int, expected: str
) -> None:
    kind = token_type_of(tokenizer_of(largest), flag_bits)
    assert kind == expected
    flags = (1 << flag_bits) - 1
    codes = np.array([0, largest, flags << FLAG_BIT, largest | flags << FLAG_BIT], np.int32)
    values = stored(codes, kind, flag_bits)
    assert values.dtype == expected
    assert read_codes(values, flag_bits).tolist() == codes.tolist()


def test_tokens_that_were_added_count_with_their_numbers() -> None:
    tokenizer = tokenizer_of(65_535)
    tokenizer.add_tokens([f"added{number}" for number in range(65_532)])
    assert token_type_of(tokenizer, 0) == "int32"
    tokens = text_input(tokenizer, token_type=token_type_of(tokenizer, 0)).transform(pa.table({"text": ["added65531"]}))
    assert tokens.to_pylist() == [[tokenizer.token_to_id("added65531")]]
    assert tokens.to_pylist()[0][0] > 65_535


@pytest.mark.parametrize("number", [65_536, 70_000, 1 << 24])
def test_a_token_beyond_the_vocabulary_is_an_error(number: int) -> None:
    tokenizer = tokenizer_of(500)
    tokenizer.post_processor = processors.TemplateProcessing("$A <end>", "$A $B", [("<end>", number)])
    text = text_input(tokenizer, token_type=token_type_of(tokenizer, 0))
    assert text.token_type == "uint16"
    with pytest.raises(DataError, match=f"makes the token {number:,}, .*tokenizer.json is damaged"):
        text.transform(pa.table({"text": ["last"]}))
    if number >= 1 << 24:
        with pytest.raises(DataError, match="16,777,216"):
            codes_of([number])


@pytest.mark.parametrize("types", [(0, 1), (1, 2)], ids=["of BERT", "of XLNet"])
def test_the_types_of_a_pair_are_kept(types: tuple[int, int]) -> None:
    tokenizer = tokenizer_of(8_000)
    template = f"$A:{types[0]} [SEP]:{types[0]} $B:{types[1]} [CLS]:{types[1]}"
    tokenizer.post_processor = processors.TemplateProcessing("$A", template, [("[SEP]", 1), ("[CLS]", 2)])
    wide = TextInput(["a", "b"], 16, 4.0, tokenizer, {"pad_token": "[PAD]"}, Cleaning(), pair=["b"], has_types=True)
    rows = pa.table({"a": ["last", "what"], "b": ["last last", ""]})
    found = _batches(wide, rows)
    assert found["input_ids"].tolist()[0][:5] == [8_000, 1, 8_000, 8_000, 2]
    assert found["token_type_ids"].tolist()[0][:5] == [*[types[0]] * 2, *[types[1]] * 3]


def test_texts_that_are_read_one_by_one_are_kept_apart() -> None:
    wide = SeparateTexts(
        ["a", "b", "c"], 16, 4.0, tokenizer_of(16_383), {"pad_token": "[PAD]"}, Cleaning(), pair=["b"], negative=["c"]
    )
    found = _batches(wide, pa.table({"a": ["last"], "b": ["last last"], "c": ["other"]}))
    assert [found[name].max() for name in ("ids", "pair_ids", "negative_ids")] == [16_383, 16_383, 3]


@pytest.mark.parametrize("largest", [16_383, 16_384, 50_256])
def test_a_language_model_learns_the_same_labels(largest: int) -> None:
    tokenizer = tokenizer_of(largest)
    wide = TokensInput(
        ["prompt", "completion"], 16, 4.0, tokenizer, {"eos_token": "[SEP]", "pad_token": "[PAD]"}, "completion"
    )
    rows = pa.table({"prompt": ["last ", "what "], "completion": ["last last", "last"]})
    kind = token_type_of(tokenizer, 2)
    assert kind == ("uint16" if largest < 16_384 else "int32")
    prepared = [
        Examples.from_table(pa.table({"values": each.transform(rows)}))
        for each in (wide, replace(wide, token_type=kind))
    ]
    labels = [label_matrix(each, 16).tolist() for each in prepared]
    assert labels[0] == labels[1]
    assert {number for row in labels[0] for number in row} == {-100, 1, largest}
    batches = [wide.batch(each) for each in prepared]
    assert {name: array.tolist() for name, array in batches[0].items()} == {
        name: array.tolist() for name, array in batches[1].items()
    }


def _batches(wide: TextInput, rows: pa.Table) -> dict[str, np.ndarray]:
    """The batch of rows in 16 bits, which is the same as in 32."""
    narrow = replace(wide, token_type=token_type_of(wide.tokenizer, wide.flag_bits))
    prepared = [Examples.from_table(pa.table({"values": each.transform(rows)})) for each in (wide, narrow)]
    assert [each.values.dtype for each in prepared] == [np.int32, np.uint16]
    first, second = (each.batch(examples) for each, examples in zip((wide, narrow), prepared, strict=True))
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype == np.int64
        assert first[name].tolist() == second[name].tolist()
    return second


def test_earlier_runs_keep_32_bits(tmp_path: Path) -> None:
    """Their rows in files, the soft labels, have them, and the memory of a row decides how streamed rows are mixed."""
    texts = text_classifier(text_input(tokenizer_of(9), token_type="uint16"), ["a", "b"], [1, 1])
    causal = language_model(TokensInput(["text"], 16, 8.0, tokenizer_of(9), {}, token_type="uint16"))
    for name, preprocessor, kind in (("texts", texts, TextInput), ("causal", causal, TokensInput)):
        folder = tmp_path / name
        folder.mkdir()
        preprocessor.save(folder)
        assert input_of(load_preprocessor(folder), kind).value_type == pa.uint16()
        state = json.loads((folder / "preprocessor.json").read_text())
        del state["token_type"]
        (folder / "preprocessor.json").write_text(json.dumps(state))
        assert input_of(load_preprocessor(folder), kind).value_type == pa.int32()
