"""Notes about odd conversations that are trained on anyway."""

import json
from pathlib import Path

from data_specs import CHATML, causal_spec, save_chat_tokenizer, write_jsonl, write_parquet
from test_conversations import CHAT, PYTHON, TOOLS

from trainjob.data import fit
from trainjob.kinds.causal_lm.conversations import PARALLEL


def test_what_stands_out_is_told_with_its_count(tmp_path: Path):
    model = save_chat_tokenizer(tmp_path / "model")
    (model / "chat_template.jinja").write_text(PYTHON)
    asked = [CHAT[0] | {"content": f"{number}?"} for number in range(10)]
    write_parquet(  # which gives every message a field `tool_calls`
        tmp_path / "train.parquet",
        [
            *({"messages": [question, *CHAT[1:]], "tools": "[]", PARALLEL: None} for question in asked[:3]),
            *({"messages": [question, *CHAT[1:]], "tools": json.dumps(TOOLS)} for question in asked[3:5]),
            *({"messages": [question, CHAT[3]], PARALLEL: True} for question in asked[5:8]),
            {"messages": [asked[8], CHAT[3] | {"refusal": "I cannot say."}], PARALLEL: True},
            {"messages": [asked[9] | {"content": "<|im_end|>"}, CHAT[3]]},
        ],
    )

    def notes() -> list[str]:
        fitted = fit(
            causal_spec(
                tmp_path / "train.parquet",
                {"pretrained": str(model), "maxLength": 600},
                messages="messages",
                validation={"uri": str(tmp_path / "train.parquet")},
            )
        )
        assert fitted.profile is not None
        return fitted.profile.notes

    assert notes() == [
        "3 of 10 conversations have tool_calls and no tools: the model learns the calls without their schema",
        "4 of 10 conversations have parallel_tool_calls: the chat template does not use it",
        "1 of 10 conversations have messages with refusal: the chat template does not use it, so it is not learned",
        "1 of 10 sampled conversations contain texts spelled like control tokens, such as <|im_end|>: the "
        "model learns them as ordinary text",
    ]
    (model / "chat_template.jinja").write_text(PYTHON + "{% if parallel_tool_calls %}{% endif %}")
    assert len(notes()) == 3


def test_system_messages_that_the_template_leaves_out_are_told(tmp_path: Path):
    model = save_chat_tokenizer(tmp_path / "model")
    system = {"role": "system", "content": "Be brief."}
    rows = [{"messages": [system, CHAT[0] | {"content": f"{number}?"}, CHAT[3]]} for number in range(8)]
    rows += [{"messages": [*rows[0]["messages"], *rows[number]["messages"]]} for number in (1, 2)]
    spec = causal_spec(
        write_jsonl(tmp_path / "t.jsonl", rows), {"pretrained": str(model), "maxLength": 200}, messages="messages"
    )

    def notes(skipped: str) -> list[str]:
        only = f"{{% for message in messages if not ({skipped}) %}}"
        (model / "chat_template.jinja").write_text(CHATML.replace("{% for message in messages %}", only))
        profile = fit(spec).profile
        assert profile is not None
        return [note.partition(":")[0] for note in profile.notes]

    first, later = "10 of 10 conversations have a system message", "2 of 10 conversations have a system message after"
    assert notes("false") == []
    assert notes("message.role == 'system'") == [first, f"{later} others"]
    assert notes("message.role == 'system' and message != messages[0]") == [f"{later} others"]
