"""Training uses the same tokens as prompting, whatever a tokenizer does at the beginning of a text."""

from typing import Any

import pytest
from prefixing import KINDS, tokenizer_of
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from trainjob.kinds.causal_lm.packing import GIVEN
from trainjob.kinds.causal_lm.piece_tokenizer import Pieces, PieceTokenizer

CHATS: dict[str, Pieces] = {
    "turns": [
        ("<|user|>\nHow many rows?<|end|>\n<|assistant|>\n", False),
        ("Two rows.<|end|>", True),
        ("\n<|user|>\n1+1?<|end|>\n<|assistant|>\n", False),
        ("2<|end|>", True),
    ],
    "inst": [("<s>[INST] 1+1? [/INST]", False), (" It is 2 </s>", True), ("[INST] 2+2? [/INST]", False), (" 4", True)],
    "plain": [
        ("user: How many?\nassistant:", False),
        (" Two rows 漢🙂", True),
        ("\nuser: 1+1?\nassistant:", False),
        (" 2", True),
    ],
    "a blank before": [("How many rows? ", False), ("Two rows.", True)],
    "a line break before": [("How many rows?\n\n", False), ("\nTwo rows.", True)],
    "nothing before": [("", False), ("Two rows.", True)],
    "within a word": [("How many ro", False), ("ws? Two", True)],
}


def learned(codes: list[int]) -> list[int]:
    return [code for code in codes if not code & GIVEN]


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", CHATS.values(), ids=CHATS.keys())
def test_what_is_learned_follows_what_is_asked(kind: str, pieces: Pieces):
    tokenizer, _ = tokenizer_of(kind)
    (codes,) = PieceTokenizer(tokenizer).codes([pieces])
    tokens = [code & ~GIVEN for code in codes]
    given = pieces[0][0]
    asked = len(ids(tokenizer, given))
    assert tokens[:asked] == ids(tokenizer, given)
    assert all(code & GIVEN for code in codes[:asked])
    assert not codes[asked] & GIVEN


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["turns", "inst", "plain", "nothing before"])
def test_the_text_is_tokenized_as_a_whole(kind: str, name: str):
    tokenizer, _ = tokenizer_of(kind)
    (codes,) = PieceTokenizer(tokenizer).codes([CHATS[name]])
    assert [code & ~GIVEN for code in codes] == ids(tokenizer, "".join(text for text, _ in CHATS[name]))


def test_a_token_that_would_join_what_is_given_and_what_is_learned_is_parted():
    tokenizer, _ = tokenizer_of("always")
    (codes,) = PieceTokenizer(tokenizer).codes([[("How many rows? ", False), ("Two", True)]])
    assert ids(tokenizer, "How many rows? Two")[-1] == tokenizer.token_to_id("▁Two")
    assert [tokenizer.id_to_token(token) for token in learned(codes)] == ["Tw", "o"]
    assert tokenizer.id_to_token(codes[-3] & ~GIVEN) == "▁"


def test_line_breaks_that_are_one_token_are_parted_as_when_asked():
    tokenizer = Tokenizer(models.BPE({"Ċ": 0, "ĊĊ": 1, "a": 2, "b": 3}, [("Ċ", "Ċ")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>")])
    rows: list[Pieces] = [[("a\n", False), ("\nb<|end|>", True)], [("a\n\n", False), ("b<|end|>", True)]]
    one, two = PieceTokenizer(tokenizer).codes(rows)
    assert [code & ~GIVEN for code in one] == [2, 0, 0, 3, 4]
    assert learned(one) == [0, 3, 4]
    assert [code & ~GIVEN for code in two] == [2, 1, 3, 4]
    assert learned(two) == [3, 4]


def test_characters_of_several_tokens_and_tokens_of_several_characters_are_learned_whole():
    tokenizer, _ = tokenizer_of("first")
    rows: list[Any] = [[("1+1?", False), ("漢", True)], [("a", False), ("ﬃ", True), ("b", False)]]
    for codes, text in zip(PieceTokenizer(tokenizer).codes(rows), ("漢", "ﬃ"), strict=True):
        assert [tokenizer.id_to_token(token) for token in learned(codes)] == [
            f"<0x{byte:02X}>" for byte in text.encode()
        ]
