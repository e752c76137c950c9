"""The text read from prompts, completions and conversations, and the part that is learned."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import CHATML

from preprocessors import input_of, labels_after, language_model
from trainjob.api import Source, TrainJobSpec
from trainjob.data import Examples, fit, load_preprocessor, prepare_examples
from trainjob.data.read.source import parts
from trainjob.errors import DataError
from trainjob.kinds.causal_lm.conversations import Conversation
from trainjob.kinds.causal_lm.row_layout import Form
from trainjob.kinds.causal_lm.tokens import TokensInput, check_tokenizer, train_byte_bpe

TURNS = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "And 2+2?"},
    {"role": "assistant", "content": "It is 4."},
]


def preprocessor(form: Form, columns: list[str], most: int = 256, template: str | None = CHATML) -> TokensInput:
    tokenizer, config = train_byte_bpe(["1+1 is 2 rows"] * 3, 300, most)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    config |= {"eos_token": "<|im_end|>"}
    return TokensInput(columns, most, 8.0, tokenizer, config | {"chat_template": template}, form)


def learned(pre: TokensInput, table: dict[str, Any]) -> list[str]:
    """The runs of tokens that are learned, in the order of the packed rows."""
    values = pre.transform(pa.table(table), lambda index: f"row {index + 1}")
    examples = Examples.from_table(pa.table({"values": values}))
    runs: list[list[int]] = []
    for labels in labels_after(pre, examples):
        before = -100
        for label in labels:
            if label >= 0 and before < 0:
                runs.append([])
            if label >= 0:
                runs[-1].append(label)
            before = label
    return [pre.tokenizer.decode(run, skip_special_tokens=False) for run in runs]


def test_of_a_prompt_nothing_is_learned():
    pre = preprocessor("completion", ["question", "answer"])
    table = {"question": ["How many?", None], "answer": [" Two rows", "x"], "more": [1, 2]}
    assert sorted(learned(pre, table)) == [" Two rows<|im_end|>", "x<|im_end|>"]
    assert pre.prompts(pre.layout.prompts(pa.table({"question": ["How many?"]}))) == [
        [pre.begin_token_id, *pre.tokenizer.encode("How many?", add_special_tokens=False).ids]
    ]


def test_of_a_conversation_the_assistants_turns_are_learned():
    pre = preprocessor("messages", ["chat"])
    assert learned(pre, {"chat": [json.dumps(TURNS)]}) == ["2<|im_end|>", "It is 4.<|im_end|>"]


def test_a_conversation_may_begin_with_the_assistant():
    chat = json.dumps([TURNS[2], TURNS[1], TURNS[4]])
    assert learned(preprocessor("messages", ["chat"]), {"chat": [chat]}) == ["2<|im_end|>", "It is 4.<|im_end|>"]
    picky = preprocessor("messages", ["chat"], template="{{ messages[0].role }}" + CHATML)
    with pytest.raises(DataError, match=r'row 1: the conversation begins with the assistant, .* of the role "user" or'):
        learned(picky, {"chat": [chat]})


def test_a_conversation_is_asked_as_it_was_learned():
    pre = preprocessor("messages", ["chat"])
    (asked,) = pre.layout.prompts(pa.table({"chat": [TURNS]}))
    assert asked == Conversation(TURNS[:4])
    (tokens,) = pre.prompts([asked])
    text = pre.tokenizer.decode(tokens, skip_special_tokens=False)
    assert text.endswith("<|im_start|>user\nAnd 2+2?<|im_end|>\n<|im_start|>assistant\n")
    (said,) = pre.prompts(["Hello"])
    assert pre.tokenizer.decode(said, skip_special_tokens=False) == (
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (None, r'^row 1: messages must be a list such as \[{"role": "user", .*not null'),
        ("[", "^row 1: the messages are not JSON: "),
        pytest.param("[" * 100_000, "^row 1: the messages are not JSON: .*recursion", id="deep"),
        ("[]", "^row 1: messages must be a list .* not \\[\\]"),
        ('{"role": "user"}', '^row 1: messages must be a list .* not {"role": "user"}'),
        ('["hello"]', "^row 1: message 1 must be an object as in .*, not str"),
        ('[{"role": "user", "content": "a"}, {"role": "assistant"}]', '^row 1: message 2 has no text in "content"'),
        ('[{"content": "a"}]', '^row 1: message 1 has no text in "role"'),
        ('[{"role": "user", "content": "a"}]', '^row 1: no message has the role "assistant": there is nothing'),
    ],
)
def test_messages_of_another_shape_are_named(messages: str | None, said: str):
    with pytest.raises(DataError, match=said):
        preprocessor("messages", ["chat"]).transform(pa.table({"chat": pa.array([messages], pa.string())}))


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "row 1: .* chat template refuses the messages: roles must"),
        ("{{ messages | length }}{{ messages[0].content }}", "row 1: the chat template writes the messages before"),
        ("{% for", "row 1: the tokenizer's chat template refuses the messages"),
        ("{{ 1 / 0 }}", "row 1: the tokenizer's chat template refuses the messages: division by zero"),
    ],
)
def test_a_template_that_does_not_do_is_named(template: str, said: str):
    with pytest.raises(DataError, match=said):
        preprocessor("messages", ["chat"], template=template).transform(pa.table({"chat": [json.dumps(TURNS)]}))


def test_a_tokenizer_without_a_chat_template_is_refused():
    with pytest.raises(DataError, match=r"^FIELD: the tokenizer has no chat template"):
        check_tokenizer(preprocessor("messages", ["chat"], template=None), "FIELD")


def test_rows_that_teach_nothing_or_do_not_fit_are_named():
    pre = preprocessor("completion", ["a", "b"], most=8)
    table = {"a": ["x", "y" * 9, "z" * 12], "b": ["1", "2", "3"]}
    with pytest.raises(DataError, match=r"^row 2: prompt and completion have 12 tokens, but at most 8 fit"):
        learned(pre, table)
    with pytest.raises(DataError, match=r'^row 1: "b" is empty: there is nothing to learn'):
        learned(pre, {"a": ["x"], "b": [""]})


def test_messages_are_read_alike_from_every_format(tmp_path: Path):
    rows = [TURNS, [*TURNS[:2], {"role": "assistant", "content": "zwei", "name": "Überschrift"}]]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"chat": row}) for row in rows))
    pq.write_table(pa.table({"chat": rows}), tmp_path / "b.parquet")
    pre = preprocessor("messages", ["chat"])
    found = [
        [turn for rows in part.read(["chat"]) for turn in learned(pre, {"chat": rows.table["chat"]})]
        for name in ("a.jsonl", "b.parquet")
        for part in parts(Source(uri=str(tmp_path / name)), None, nested=["chat"])
    ]
    assert found[0] == found[1]
    assert sorted(found[0]) == ["2<|im_end|>", "It is 4.<|im_end|>", "zwei<|im_end|>"]


def test_what_is_saved_loads(tmp_path: Path):
    pre = preprocessor("messages", ["chat"])
    language_model(pre).save(tmp_path)
    loaded = input_of(load_preprocessor(tmp_path), TokensInput)
    table = pa.table({"chat": [json.dumps(TURNS)]})
    assert loaded.transform(table) == pre.transform(table)


def test_prompts_and_completions_are_fitted_from_scratch(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("q,a\n" + "\n".join(f"row {n}?,{n}" for n in range(20)))
    spec = TrainJobSpec.model_validate(
        {
            "model": {"causalLM": {"decoder": {"vocabularySize": 300}, "maxLength": 32}},
            "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "prompt": "q", "completion": "a"},
        }
    )
    fitted = fit(spec)
    assert (fitted.columns, fitted.rows) == (["q", "a"], {"train": 16, "validation": 4})
    assert prepare_examples(spec, fitted)["train"].lengths.max() <= 32


def test_a_pretrained_models_chat_template_is_found(tmp_path: Path):
    model, rows = tmp_path / "model", tmp_path / "rows.jsonl"
    model.mkdir()
    language_model(preprocessor("messages", ["chat"], template=None)).save(model)
    chats = [[{**TURNS[1], "content": f"{n}+1?"}, TURNS[2]] for n in range(20)]
    rows.write_text("\n".join(json.dumps({"chat": chat}) for chat in chats))
    spec = TrainJobSpec.model_validate(
        {
            "model": {"causalLM": {"pretrained": str(model), "maxLength": 128}},
            "dataset": {"train": {"uri": str(rows)}, "messages": "chat"},
        }
    )
    with pytest.raises(DataError, match=r"^spec\.model\.causalLM\.pretrained: the tokenizer has no chat template"):
        fit(spec)
    (model / "chat_template.jinja").write_text(CHATML)
    fitted = fit(spec)
    examples = prepare_examples(spec, fitted)["train"]
    labels = labels_after(input_of(fitted.preprocessor, TokensInput), examples)
    assert sum(label >= 0 for row in labels for label in row) == 16 * len("2|")  # the answer and the token that ends it
