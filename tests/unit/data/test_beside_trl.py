"""Compares the learned tokens of prompts, completions and conversations with those of trl's SFTTrainer."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from prefixing import KINDS, tokenizer_of
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from preprocessors import labels_after, language_model
from trainjob.data import Examples
from trainjob.data.batches.examples import IGNORED
from trainjob.kinds.causal_lm.row_layout import Form
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe

pytestmark = pytest.mark.filterwarnings(r"ignore::FutureWarning:(trl|transformers)\.")

LENGTH = 256
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ message.content }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A chat template with the marks that trl needs."""
TURNS = (
    "{% for message in messages %}<|{{ message.role }}|>\n"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|end|>{% endgeneration %}"
    "{% else %}{{ message.content }}<|end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
"""Phi-3's way."""
INST = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %}"
    "{% generation %}{{ ' ' + message.content + ' ' + eos_token }}{% endgeneration %}"
    "{% else %}[INST] {{ message.content }} [/INST]{% endif %}{% endfor %}"
)
"""Llama 2's way."""
PAIRS = [
    ("How many rows?", " Two rows."),
    ("Zeile für Zeile: 漢字 🙂\n", "\n  über 🙂"),
    ("", "from nothing"),
    ("row 1\trow 2", "\n\n"),
]
CHATS = [
    [("user", "1+1?"), ("assistant", "2")],
    [("system", "Be short."), ("user", "1+1?"), ("assistant", "\n2"), ("user", "And 2+2?"), ("assistant", "It is 4.")],
    [("user", "ünï 🙂?"), ("assistant", "ja: 🙂\n\nrows "), ("user", "unanswered")],
    [("assistant", "I begin."), ("user", "Do."), ("assistant", "")],
]
Document = tuple[list[int], list[int]]
"""A row's tokens, and what is learned at each of them."""


def preprocessor(form: Form, columns: list[str]) -> TokensInput:
    tokenizer, config = train_byte_bpe(["How many rows? Two rows.", "1+1 is 2 rows"] * 3, 320, LENGTH)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    if form == "messages":
        config |= {"eos_token": "<|im_end|>", "chat_template": CHATML}
    return TokensInput(columns, LENGTH, 8.0, tokenizer, config, form)


def of_kind(form: Form, columns: list[str], kind: str, template: str) -> TokensInput:
    tokenizer, config = tokenizer_of(kind)
    return TokensInput(columns, LENGTH, 8.0, tokenizer, config | {"chat_template": template}, form)


def ours(pre: TokensInput, rows: list[dict[str, Any]]) -> list[Document]:
    """Each row by itself, so that no other is packed beside it."""
    documents: list[Document] = []
    for row in rows:
        values = pre.transform(pa.table({name: [value] for name, value in row.items()}))
        examples = Examples.from_table(pa.table({"values": values}))
        inputs, (following,) = pre.batch(examples), labels_after(pre, examples)
        length = int(np.flatnonzero(np.array(following) != IGNORED)[-1]) + 2
        labels = [IGNORED, *following][:length]  # each under the token that it predicts
        documents.append(([*inputs["input_ids"][0].tolist()][: length - 1] + labels[-1:], labels))
    return documents


def trls(pre: TokensInput, rows: list[dict[str, Any]], folder: Path) -> list[Document]:
    (folder / "model").mkdir()
    language_model(pre).save(folder / "model")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "model")
    config = LlamaConfig(
        vocab_size=pre.vocabulary_size, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    settings = SFTConfig(
        output_dir=str(folder / "trl"),
        max_length=None,
        completion_only_loss=True if pre.form == "completion" else None,
        assistant_only_loss=pre.form == "messages",
        bf16=False,
        report_to="none",
        use_cpu=True,
    )
    trainer = SFTTrainer(
        model=LlamaForCausalLM(config),
        args=settings,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    found: list[Document] = []
    for row in cast("list[dict[str, Any]]", trainer.train_dataset):
        batch = trainer.data_collator([row])
        found.append((batch["input_ids"][0].tolist(), batch["labels"][0].tolist()))
    return found


def assert_the_same(pre: TokensInput, folder: Path) -> None:
    if pre.form == "completion":
        rows: list[dict[str, Any]] = [{"prompt": prompt, "completion": completion} for prompt, completion in PAIRS]
        mine = rows
    else:
        chats = [[{"role": role, "content": content} for role, content in chat] for chat in CHATS]
        rows = [{"messages": chat} for chat in chats]
        mine = [{"messages": json.dumps(chat)} for chat in chats]
    for (tokens, labels), (their_tokens, their_labels) in zip(ours(pre, mine), trls(pre, rows, folder), strict=True):
        end = len(tokens)  # of what comes after the last answer, nothing is learned
        assert their_tokens[:end] == tokens
        assert [IGNORED, *their_labels[1:end]] == labels  # nothing predicts the first token
        assert set(their_labels[end:]) <= {IGNORED}
        assert set(labels) > {IGNORED}


@pytest.mark.parametrize(("form", "columns"), [("completion", ["prompt", "completion"]), ("messages", ["messages"])])
def test_the_same_tokens_are_learned(form: Form, columns: list[str], tmp_path: Path):
    assert_the_same(preprocessor(form, columns), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_tokens_are_learned_whatever_the_tokenizer_puts_before_a_text(kind: str, tmp_path: Path):
    # trl finds no answer that begins with a blank where no token has that blank's place, and none at all with bert's
    for name, template in (("turns", TURNS), ("inst", INST))[: {"bert": 0, "trimmed": 1}.get(kind, 2)]:
        (tmp_path / name).mkdir()
        assert_the_same(of_kind("messages", ["messages"], kind, template), tmp_path / name)
    assert_the_same(of_kind("completion", ["prompt", "completion"], kind, TURNS), tmp_path)
