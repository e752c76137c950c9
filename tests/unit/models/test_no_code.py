"""Code that comes with a model is never run, nor offered to be run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel

from preprocessors import input_of
from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.inputs.text import TextInput
from trainjob.models import build, load_model, save_model

OWN_CLASS = {
    "model_type": "strange",
    "auto_map": {"AutoConfig": "strange.Config", "AutoModelForSequenceClassification": "strange.Model"},
}
KERNEL = {"attn_implementation": "kernels-community/flash-attn"}
CONFIGS: list[tuple[dict[str, Any], str]] = [
    (OWN_CLASS, r"needs its own code \(auto_map\), which is never run"),
    (KERNEL, r"names code from the hub \(attn_implementation\), which is never run"),
    ({f"_{key}": value for key, value in KERNEL.items()}, r"\(_attn_implementation\), which is never run"),
]


def change(folder: Path, fields: dict[str, Any]) -> Path:
    """Changes a model's config.json and lays code beside it that tells when it is run; returns what it then writes."""
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps(config | fields))
    ran = folder / "ran"
    (folder / "strange.py").write_text(f"open({str(ran)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    return ran


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions asked on the terminal; the answer is yes."""
    questions: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question="": questions.append(question) or "y")
    return questions


@pytest.mark.parametrize(("fields", "message"), CONFIGS)
def test_of_a_saved_model(
    fields: dict[str, Any],
    message: str,
    tmp_path: Path,
    text_model: Callable[..., Model],
    text_preprocessor: Preprocessor,
    asked: list[str],
) -> None:
    save_model(build(text_model(), text_preprocessor), text_preprocessor, tmp_path)
    ran = change(tmp_path, fields)
    with pytest.raises(UserError, match=message):
        load_model(tmp_path)
    assert not ran.exists()
    assert not asked


@pytest.mark.parametrize(("fields", "message"), CONFIGS)
def test_of_a_pretrained_encoder(
    fields: dict[str, Any],
    message: str,
    tmp_path: Path,
    text_model: Callable[..., Model],
    text_preprocessor: Preprocessor,
    asked: list[str],
) -> None:
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    vocabulary = input_of(text_preprocessor, TextInput).vocabulary_size
    BertModel(BertConfig(vocab_size=vocabulary, **sizes)).save_pretrained(tmp_path)
    ran = change(tmp_path, fields)
    with pytest.raises(UserError, match=rf"pretrained: .*{message}"):
        build(text_model(pretrained=str(tmp_path)), text_preprocessor)
    assert not ran.exists()
    assert not asked


def test_a_class_that_transformers_has_is_taken_in_place_of_the_folders(
    tmp_path: Path, text_model: Callable[..., Model], text_preprocessor: Preprocessor, asked: list[str]
) -> None:
    save_model(build(text_model(), text_preprocessor), text_preprocessor, tmp_path)
    ran = change(tmp_path, {"auto_map": OWN_CLASS["auto_map"]})
    load_model(tmp_path)
    assert not ran.exists()
    assert not asked
