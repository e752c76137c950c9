"""Conversations with tools as OpenAI's fine-tuning has them, rendered by chat templates of real models."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import trl
from data_specs import CHATML, causal_spec, save_chat_tokenizer, some_chats, write_jsonl, write_parquet

from trainjob.api import Source
from trainjob.cli.predicted_tables import read
from trainjob.data import fit, load_preprocessor, prepare_examples
from trainjob.data.read.rows import refuse
from trainjob.data.read.source import parts
from trainjob.errors import DataError, Notice
from trainjob.kinds.causal_lm.packing import GIVEN, START
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe

COLUMNS = ["messages", "tools", "parallel_tool_calls"]
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "adds two numbers", "parameters": ADD}}]
CALL = {"id": "call0adds", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": null}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "what is 2 plus 2?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call0adds", "name": "add", "content": "4"},
    {"role": "assistant", "content": "it is 4"},
]
PYTHON = (  # a template that writes arguments as they come, as some do
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.content is not none %}{{ m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments }}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def template(name: str) -> str:
    """The chat template of a model on the hub, as trl stores it."""
    return (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text()


def chats(written: str, columns: list[str] = COLUMNS) -> TokensInput:
    tokenizer, config = train_byte_bpe(["what is 1 plus 1", "it is 2"] * 3, 300, 9999)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    config |= {"eos_token": "<|im_end|>", "bos_token": "<s>", "chat_template": written}
    return TokensInput(columns, 9999, 8.0, tokenizer, config, "messages")


def table(messages: Any = CHAT, tools: Any = TOOLS, parallel: Any = None) -> pa.Table:
    row = {"messages": messages, "tools": tools, "parallel_tool_calls": parallel}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
    return pa.table({name: pa.array([text], pa.string()) for name, text in texts.items()})


def texts(pre: TokensInput, rows: pa.Table) -> tuple[str, str]:
    """The text that is read from the rows, and the part that is learned."""
    codes = [code & ~START for row in pre.transform(rows).to_pylist() for code in row]
    decode = pre.tokenizer.decode
    whole = decode([code & ~GIVEN for code in codes], skip_special_tokens=False)
    return whole, decode([code for code in codes if not code & GIVEN], skip_special_tokens=False)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("qwen2_5", '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": null}}\n</tool_call><|im_end|>'),
        ("llama3_1", '{"name": "add", "parameters": {"a": 2, "b": null}}<|eot_id|>'),
        ("gemma4_v5", "<|tool_call>call:add{a:2,b:null}<tool_call|><|tool_response>"),
        ("gptoss", ' to=functions.add<|channel|>commentary json<|message|>{"a": 2, "b": null}<|call|>'),
        ("glm4moe", "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>2</arg_value>\n<arg_key>b</arg_key>"),
        ("", '<call>add {"a": 2, "b": null}<|im_end|>'),
    ],
)
@pytest.mark.parametrize("silent", [{"content": None}, {"content": ""}, {}], ids=["null", "empty", "absent"])
def test_calls_are_learned_with_their_schema(name: str, call: str, silent: dict[str, Any]):
    pre = chats(template(name) if name else PYTHON)
    message = silent | {"role": "assistant", "tool_calls": [CALL]}
    whole, learned = texts(pre, table([CHAT[0], message, *CHAT[2:]]))
    assert call in learned
    assert "it is 4" in learned
    assert "adds two numbers" in whole
    assert "adds two numbers" not in learned
    assert "None" not in whole
    assert texts(pre, table([CHAT[0], message, *CHAT[2:]], json.dumps(TOOLS))) == (whole, learned)
    given = CALL | {"function": {"name": "add", "arguments": {"a": 2, "b": 3}}}
    assert '"' not in call or '"b": 3' in texts(pre, table([CHAT[0], message | {"tool_calls": [given]}, *CHAT[2:]]))[1]


def test_a_template_that_wants_text_and_null_has_them():
    written = template("deepseekv3").replace("<think>\\n", "")
    written = written.replace("{{ bos_token }}", "{% if tools %}{{ tools | tojson }}{% endif %}")
    written = written.replace("{{bos_token}}", "{% if tools %}{{ tools | tojson }}{% endif %}")
    assert 'add\n```json\n{"a": 2, "b": null}\n```' in texts(chats(written), table())[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deepseekv3", 'row 1: the chat template leaves out the row\'s "tools"'),
        ("llama3", "row 1: the chat template leaves out the tool_calls of message 2"),
        ("phi3", "row 1: the chat template leaves out the tool_calls of message 2"),
        ("lfm2", "row 1: the chat template leaves out the tool_calls of message 2"),
    ],
)
def test_what_a_template_leaves_out_is_refused(name: str, said: str):
    pre = chats(template(name))
    with pytest.raises(DataError, match=said):
        pre.transform(table())
    with pytest.raises(DataError, match=said):
        pre.prompts([{"messages": CHAT[:3], "tools": TOOLS}], lambda index: f"row {index + 1}")


def test_an_answer_of_a_tool_that_is_left_out_is_refused():
    with pytest.raises(
        DataError, match=r'row 1: the chat template leaves out the content \(role "tool"\) of message 2'
    ):
        chats(template("phi3")).transform(table([CHAT[0], *CHAT[2:]], None))


def test_of_messages_with_weight_0_nothing_is_learned():
    chat = [
        CHAT[0],
        {"role": "assistant", "content": "it is 5", "weight": 0},
        CHAT[0],
        CHAT[3] | {"weight": 1},
        CHAT[0],
    ]
    whole, learned = texts(chats(CHATML), table(chat, None))
    assert learned == "it is 4<|im_end|>"
    assert "it is 5" in whole
    assert "weight" not in whole
    assert texts(chats(template("qwen3")), table(chat, None))[1] == "<think>\n\n</think>\n\nit is 4<|im_end|>"
    for messages, said in (
        ([CHAT[0], CHAT[3] | {"weight": 0}], 'no message has the role "assistant" and a weight of 1: there is nothing'),
        ([CHAT[0], CHAT[3] | {"weight": 0.5}], "row 1: message 2: weight must be 0 or 1, not 0.5"),
        ([CHAT[0] | {"weight": 1}, CHAT[3]], "row 1: message 1: weight is 1, but only messages of the role"),
    ):
        with pytest.raises(DataError, match=said):
            texts(chats(CHATML), table(messages, None))


def test_conversations_of_a_template_that_ends_every_text_may_have_several_turns():
    _, learned = texts(chats(template("phi3")), table([CHAT[0], CHAT[3]] * 2, None))
    assert learned == "it is 4<|end|>it is 4<|end|>\n<|im_end|>"


def test_nulls_that_parquet_pads_are_left_out_at_every_depth(tmp_path: Path):
    def row(name: str, arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": schema}}}
        return {"messages": [CHAT[0], {"role": "assistant", "tool_calls": [call]}, *CHAT[2:]], "tools": [tool]}

    rows = [
        row("add", {"a": 2, "of": [{"x": 1}, None]}, {"a": {"type": "integer"}}),
        row("weather", {"of": [{"y": 2}], "city": "Rome"}, {"city": {"enum": ["Rome", None]}}),
        {"messages": CHAT, "tools": TOOLS},
    ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    write_parquet(tmp_path / "a.parquet", rows[:2])
    write_parquet(tmp_path / "b.parquet", rows[2:])
    pre = chats(template("qwen2_5"))
    found = {
        name: [
            texts(pre, each.table.slice(index, 1))
            for part in parts(Source(uri=str(tmp_path / name)), None, nested=COLUMNS, optional=COLUMNS[1:])
            for each in part.read(COLUMNS)
            for index in range(len(each.table))
        ]
        for name in ("a.jsonl", "a.parquet", "b.parquet")
    }
    assert found["a.parquet"] + found["b.parquet"] == found["a.jsonl"]
    assert '"arguments": {"of": [{"y": 2}], "city": "Rome"}}' in found["a.parquet"][1][1]
    assert '"of": [{"x": 1}, null]' in found["a.parquet"][0][1]
    assert '{"city": {"enum": ["Rome", null]}}' in found["a.parquet"][1][0]
    assert '"arguments": {"a": 2, "b": null}}' in found["b.parquet"][0][1]


def test_contents_of_text_parts_are_joined():
    content = [{"type": "text", "text": "what is 2"}, {"type": "text", "text": " plus 2?"}]
    assert texts(chats(CHATML), table([{"role": "user", "content": content}, CHAT[3]], None)) == texts(
        chats(CHATML), table([CHAT[0], CHAT[3]], None)
    )


def test_tools_have_no_control_tokens():
    tool = {"type": "function", "function": {"name": "add", "description": "<|im_end|>", "<|im_end|>": "<|im_start|>"}}
    call = CALL | {"function": {"name": "add", "arguments": '{"<|im_end|>": "<|im_start|>"}'}}
    chat = [CHAT[0], {"role": "assistant", "tool_calls": [call]}, CHAT[2] | {"content": "<|im_end|>"}, CHAT[3]]
    for written in (template("qwen2_5"), PYTHON):
        pre = chats(written)
        ends = (pre.tokenizer.token_to_id("<|im_start|>"), pre.tokenizer.token_to_id("<|im_end|>"))
        numbers, expected = (
            [code & ~(GIVEN | START) for code in pre.transform(row).to_pylist()[0]]
            for row in (table(chat, [tool]), table())
        )
        assert [numbers.count(end) for end in ends] == [expected.count(end) for end in ends]
        assert '{"<|im_end|>": "<|im_start|>"}' in texts(pre, table(chat, [tool]))[1]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [CHAT[0], {"role": "assistant", "content": None}]}, 'message 2 has no text in "content"'),
        ({"messages": [CHAT[0], {"role": "assistant", "tool_calls": []}]}, 'message 2 has no text in "content"'),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "message 1: the content's parts must be",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "text": "", "image": "a.png"}]}]},
            "message 1: the content's parts must be texts, not .*a.png",
        ),
        ({"messages": [{"from": "human", "value": "hi"}]}, "message 1 is in ShareGPT's form: rename"),
        (
            {"messages": [CHAT[0], CHAT[3] | {"training": False}]},
            'message 2 has "training": false; .* write "weight": 0',
        ),
        ({"messages": [CHAT[0], CHAT[3] | {"train": False}]}, 'message 2 has "train": false'),
        ({"messages": [CHAT[0], CHAT[3] | {"loss": False}]}, 'message 2 has "loss": false'),
        ({"messages": [CHAT[0], CHAT[3] | {"tool_calls": CALL}]}, 'message 2: tool_calls must be a list .*, not {"id"'),
        (
            {"messages": [CHAT[0] | {"tool_calls": 0}, CHAT[3] | {"tool_calls": 7}]},
            "message 2: tool_calls must be .* 7",
        ),
        (
            {"messages": [CHAT[0], CHAT[3] | {"role": "gpt"}]},
            'no message has the role "assistant": .*; the roles are user, gpt',
        ),
        (
            {"messages": [CHAT[0], CHAT[3] | {"content": " "}, CHAT[0], CHAT[3] | {"weight": 0}]},
            "the assistant's messages are empty: there is nothing to learn",
        ),
        (
            {"messages": [CHAT[0], CHAT[3] | {"function_call": {"name": "add"}}]},
            'message 2 has a "function_call", the old',
        ),
        ({"messages": [CHAT[0], CHAT[3] | {"tool_calls": ["add"]}]}, "message 2, call 1: a tool call must be as"),
        ({"messages": [CHAT[0], CHAT[3] | {"tool_calls": [{"id": "1"}]}]}, "message 2, call 1: a tool call must be as"),
        (
            {"messages": [CHAT[0], CHAT[3] | {"tool_calls": [{"function": {"name": "add", "arguments": "{"}}]}]},
            "message 2, call 1: the arguments of add are not JSON",
        ),
        (
            {"messages": [CHAT[0], CHAT[3] | {"tool_calls": [{"function": {"name": "add", "arguments": "[1]"}}]}]},
            r"message 2, call 1: the arguments of add must be an object, not \[1\]",
        ),
        ({"tools": {"name": "add"}}, 'tools must be a list such as .* not {"name": "add"}'),
        ({"tools": ["add"]}, r'tools must be a list such as .* not \["add"\]'),
        ({"tools": "hammer"}, "the tools are not JSON"),
        ({"parallel": 2}, "parallel_tool_calls must be true or false, not 2"),
        (
            {"messages": [CHAT[0], CHAT[1] | {"tool_calls": [CALL, CALL]}], "parallel": False},
            "message 2 has several tool_calls, and parallel_tool_calls is false",
        ),
    ],
)
def test_what_is_no_conversation_is_named(row: dict[str, Any], said: str):
    with pytest.raises(DataError, match=f"^row 1: {said}"):
        chats(PYTHON).transform(table(**row))


def test_tools_may_be_missing_in_some_sets_and_rows(tmp_path: Path):
    model = save_chat_tokenizer(tmp_path / "model")
    (model / "chat_template.jinja").write_text(PYTHON)
    asked = [CHAT[0] | {"content": f"{number}?"} for number in range(8)]
    with_tools = [{"messages": [question, *CHAT[1:]], "tools": TOOLS} for question in asked[:4]]
    without = [{"messages": [question, CHAT[3]], "parallel_tool_calls": True} for question in asked[4:]]
    write_jsonl(tmp_path / "train.jsonl", [*without, *with_tools])
    write_jsonl(tmp_path / "validation.jsonl", [{"messages": [CHAT[0], CHAT[3]]}])
    write_parquet(tmp_path / "test.parquet", [{"messages": [CHAT[0], CHAT[3]]}])
    (tmp_path / "test.csv").write_text("messages\n" + '"' + json.dumps([CHAT[0], CHAT[3]]).replace('"', '""') + '"\n')
    spec = causal_spec(
        tmp_path / "train.jsonl",
        {"pretrained": str(model), "maxLength": 600},
        messages="messages",
        validation={"uri": str(tmp_path / "validation.jsonl")},
        test={"uri": str(tmp_path / "test.parquet")},
    )
    fitted = fit(spec)
    assert fitted.columns == COLUMNS
    assert fitted.rows == {"train": 8, "validation": 1, "test": 1}
    sets = prepare_examples(spec, fitted)
    assert np.array_equal(sets["validation"].values, sets["test"].values)
    (part,) = parts(Source(uri=str(tmp_path / "test.csv")), None, nested=COLUMNS, optional=COLUMNS[1:])
    (rows,) = part.read(fitted.columns)
    assert fitted.preprocessor.input.transform(rows.table, rows.where).to_pylist() == [sets["test"].values.tolist()]


def test_predictions_are_written_beside_the_columns_that_there_are(tmp_path: Path):
    for number, row in enumerate(({"messages": CHAT}, {"messages": CHAT, "tools": TOOLS, "more": [1]})):
        (part,) = parts(
            Source(uri=str(write_jsonl(tmp_path / f"{number}.jsonl", [row]))),
            None,
            nested=COLUMNS,
            optional=COLUMNS[1:],
        )
        with pytest.warns(Notice, match="lists or objects: more") if number else nullcontext():
            (rows,) = read(part, COLUMNS[:1], refuse)
        assert rows.table.column_names == list(row)[: 1 + number]


def test_a_row_is_asked_with_its_tools_as_it_was_learned():
    pre = chats(template("qwen2_5"))
    (asked,) = pre.layout.prompts(table())
    (tokens,) = pre.prompts([asked])
    whole = [code & ~(GIVEN | START) for code in pre.transform(table()).to_pylist()[0]]
    assert tokens == whole[: len(tokens)]
    assert pre.prompts([{"messages": CHAT[:3], "tools": TOOLS}]) == [tokens]
    assert pre.prompts([CHAT[:3]]) != [tokens]
    with pytest.raises(
        DataError, match="row 1: tool is unknown; a conversation has messages, tools and parallel_tool_calls"
    ):
        pre.prompts([{"messages": CHAT[:3], "tool": TOOLS}])


def test_the_date_of_a_template_stays_that_of_the_fit(tmp_path: Path):
    """Else a run that continues on another day would train on other tokens."""
    model = save_chat_tokenizer(tmp_path / "model")
    dated = "{% set today = strftime_now( '%d %B %Y, %H:%M:%S' ) %}{{ today }}"
    (model / "chat_template.jinja").write_text(dated + CHATML)
    path = write_jsonl(tmp_path / "t.jsonl", some_chats(9))
    fitted = fit(causal_spec(path, {"pretrained": str(model), "maxLength": 200}, messages="chat"))
    fitted.preprocessor.save(tmp_path)
    pre = load_preprocessor(tmp_path).input
    assert isinstance(pre, TokensInput)
    assert pre.fitted_at is not None
    pre = replace(pre, fitted_at="2020-02-03T04:05:06", token_type="int32")
    row = pa.table({"chat": [json.dumps(CHAT[:1] + CHAT[3:])]})
    learned = pre.tokenizer.decode([code & ~(GIVEN | START) for code in pre.transform(row).to_pylist()[0]])
    asked = pre.tokenizer.decode(pre.prompts([CHAT[:1]])[0])
    assert learned.startswith("03 February 2020, 04:05:06")
    assert re.match(r"\d\d [A-Z][a-z]+ 20\d\d, ", asked)
    assert "2020" not in asked
