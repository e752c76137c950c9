"""Texts become rows of tokens from which each can be had back, whatever it holds."""

from pathlib import Path

import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from preprocessors import input_of, labels_after, language_model
from trainjob.api import TrainJobSpec
from trainjob.data import Examples, fit, load_preprocessor, prepare_examples
from trainjob.errors import DataError
from trainjob.kinds.causal_lm.tokens import END, PAD, TokensInput, check_tokenizer, train_byte_bpe

TEXTS = ["Returns the number of rows.", "Returns the sum of all rows.", "Removes the rows.", "ünïcödé 🙂 rows 🙂"] * 3


@pytest.fixture(scope="module")
def preprocessor() -> TokensInput:
    return TokensInput(["text"], 16, 8.0, *train_byte_bpe(TEXTS, 320, 16))


def test_two_trainings_give_the_same_tokenizer():
    assert train_byte_bpe(TEXTS, 320, 16)[0].to_str() == train_byte_bpe(TEXTS, 320, 16)[0].to_str()


@pytest.mark.parametrize("text", ["", "Returns rows.", "never seen: 漢字 👩‍🚀\x00\t\n ", " ", "🙂", f"it says {PAD}"])
def test_all_of_a_text_and_its_end_are_learned(preprocessor: TokensInput, text: str):
    values = preprocessor.transform(pa.table({"text": [text]}))
    learned: list[int] = []
    for label in labels_after(preprocessor, Examples.from_table(pa.table({"values": values}))):
        learned += [token for token in label if token >= 0]
    assert learned[-1] == preprocessor.end_token_id
    assert preprocessor.tokenizer.decode(learned[:-1], skip_special_tokens=False) == text


def test_what_is_saved_loads(preprocessor: TokensInput, tmp_path: Path):
    language_model(preprocessor).save(tmp_path)
    loaded = input_of(load_preprocessor(tmp_path), TokensInput)
    table = pa.table({"text": TEXTS})
    assert loaded.transform(table) == preprocessor.transform(table)
    assert (loaded.begin_token_id, loaded.end_token_id, loaded.pad_token_id) == (1, 1, 0)


def test_a_tokenizer_without_an_end_is_refused(preprocessor: TokensInput):
    without = TokensInput(["text"], 16, 8.0, preprocessor.tokenizer, {"pad_token": PAD})
    with pytest.raises(DataError, match=r"^FIELD: the tokenizer names no eos_token"):
        check_tokenizer(without, "FIELD")


def test_a_tokenizer_without_padding_pads_with_the_end(preprocessor: TokensInput):
    without = TokensInput(["text"], 16, 8.0, preprocessor.tokenizer, {"eos_token": {"content": END}})
    assert without.pad_token_id == without.end_token_id


def _spec(folder: Path, texts: list[str]) -> TrainJobSpec:
    (folder / "texts.csv").write_text("\n".join(["text", *(f'"{text}"' for text in texts)]))
    return TrainJobSpec.model_validate(
        {
            "model": {"causalLM": {"decoder": {"vocabularySize": 320}, "maxLength": 16}},
            "dataset": {"train": {"uri": str(folder / "texts.csv")}, "text": ["text"]},
        }
    )


def test_a_share_of_the_texts_is_set_aside_and_the_rest_packed(tmp_path: Path):
    spec = _spec(tmp_path, [f"Returns row {number}." for number in range(50)])
    fitted = fit(spec)
    assert (fitted.rows, fitted.label) == ({"train": 40, "validation": 10}, None)
    sets = prepare_examples(spec, fitted)
    assert (sets["train"].lengths <= 16).all()
    labels = labels_after(input_of(fitted.preprocessor, TokensInput), sets["train"])
    assert sum(row.count(1) for row in labels) == 40


def test_texts_that_are_all_equal_cannot_be_split(tmp_path: Path):
    with pytest.raises(DataError, match="has 4 rows, all equal: too few to set some aside for validation"):
        fit(_spec(tmp_path, ["same"] * 4))


def test_transformers_begins_a_text_alike(preprocessor: TokensInput):
    assert isinstance(preprocessor.tokenizer, Tokenizer)
    assert preprocessor.tokenizer.encode("rows").ids[0] == preprocessor.begin_token_id
