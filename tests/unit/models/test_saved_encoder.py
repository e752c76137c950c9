"""Encoders from scratch answer without transformers, and as transformers does."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.kinds.text_classifier.saved_encoder import SavedEncoder
from trainjob.models import build, load_model, save_model


@pytest.fixture
def folder(tmp_path: Path, text_model: Callable[..., Model], text_preprocessor: Preprocessor) -> Path:
    """A saved encoder with layers of both types, with full and with sliding attention."""
    encoder = {"layers": 5, "hiddenSize": 32, "heads": 2}
    module = build(text_model(encoder=encoder, maxLength=256), text_preprocessor)
    torch.manual_seed(0)
    for parameter in module.parameters():  # all of them: normalizations begin as ones
        torch.nn.init.normal_(parameter, std=0.5)
    save_model(module, text_preprocessor, tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **fields: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | fields))


@pytest.mark.parametrize("is_bfloat16", [False, True])
@pytest.mark.parametrize("length", [3, 63, 64, 65, 200])
@pytest.mark.parametrize("padding", [None, 0, 1])
def test_logits_equal_those_of_transformers(folder: Path, length: int, padding: int | None, is_bfloat16: bool):
    """`padding` is that of the second row; without, there is no mask."""
    quick, _ = load_model(folder, only_to_answer=True)
    slow, _ = load_model(folder)
    assert isinstance(quick, SavedEncoder)
    assert isinstance(slow, TextModule)
    assert quick.problem_type == slow.problem_type
    tokens = torch.arange(2 * length).view(2, length) % 29
    inputs = {"input_ids": tokens}
    if padding is not None:
        inputs["attention_mask"] = torch.ones_like(tokens)
        inputs["attention_mask"][1, length - padding :] = 0
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
        expected = slow(**inputs)
        assert expected.std() > 0.1, "all parts of the network matter"
        torch.testing.assert_close(quick(**inputs), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "fields",
    [
        {"classifier_pooling": "cls"},
        {"hidden_activation": "relu"},
        {"trainjob_pruned": {}},
        {"a_field_of_tomorrow": 1},
        {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_other_networks_need_transformers(folder: Path, fields: dict[str, Any]):
    change(folder, **fields)
    assert isinstance(load_model(folder, only_to_answer=True)[0], TextModule)


def test_weights_of_another_network_are_refused(folder: Path):
    change(folder, hidden_size=64)
    with pytest.raises(UserError, match="the model is damaged"):
        load_model(folder, only_to_answer=True)


def test_it_is_loaded_without_transformers_and_without_a_random_number(folder: Path):
    program = f"""
import sys, torch
from trainjob import Predictor
before = torch.random.get_rng_state()
Predictor.load({str(folder)!r}).predict(["a cat"])
assert torch.equal(before, torch.random.get_rng_state())
print(*{{"transformers", "torch._dynamo"}} & sys.modules.keys())
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=100)
    assert found.stdout == "\n"
