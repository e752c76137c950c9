"""An adapter beside a pretrained decoder: trained, saved and loaded alone, and merged."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch.nn import functional
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModelForCausalLM
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from typer.testing import CliRunner

from preprocessors import language_model
from trainjob.api import CausalLM
from trainjob.cli.app import app
from trainjob.errors import UserError
from trainjob.kinds.causal_lm.network import CausalLMModule, build
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe
from trainjob.models import load_language_model, save_model

LENGTH = 24
TOKENS, POSITIONS = torch.arange(12)[None], torch.arange(12)[None]


@pytest.fixture(scope="module")
def preprocessor() -> TokensInput:
    return TokensInput(["text"], LENGTH, 8.0, *train_byte_bpe(["Returns the rows."] * 3, 300, LENGTH))


@pytest.fixture(params=["llama", "gpt2"])
def base(request: pytest.FixtureRequest, preprocessor: TokensInput, tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    torch.manual_seed(0)
    if request.param == "llama":
        llama = LlamaConfig(
            vocab_size=300, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
        )
        LlamaForCausalLM(llama).save_pretrained(folder)
    else:
        GPT2LMHeadModel(
            GPT2Config(vocab_size=300, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=1)
        ).save_pretrained(folder)
    language_model(preprocessor).save(folder)
    return folder


def spec(base: Path, **lora: Any) -> CausalLM:
    return CausalLM.model_validate({"pretrained": str(base), "maxLength": LENGTH, "lora": {"rank": 4} | lora})


def answers(model: CausalLMModule) -> torch.Tensor:
    with torch.inference_mode():
        return model.eval()(TOKENS, POSITIONS)


def trained(base: Path, preprocessor: TokensInput, **lora: Any) -> CausalLMModule:
    """The model after three steps on all trainable weights."""
    torch.manual_seed(0)
    model = build(spec(base, **lora), preprocessor)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], 0.05)
    for _ in range(3):
        functional.cross_entropy(model(TOKENS, POSITIONS)[0, :-1], TOKENS[0, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def test_an_adapter_begins_as_the_network_itself_and_alone_is_trained(base: Path, preprocessor: TokensInput):
    plain = build(CausalLM(pretrained=str(base), max_length=LENGTH), preprocessor)
    before = {name: weight.clone() for name, weight in plain.network.named_parameters()}
    torch.testing.assert_close(answers(build(spec(base), preprocessor)), answers(plain))
    model = trained(base, preprocessor)
    assert not torch.allclose(answers(model), answers(plain), atol=1e-2)
    after = {name.replace(".base_layer", ""): weight for name, weight in model.network.named_parameters()}
    for name, weight in before.items():
        assert torch.equal(after[name], weight), name
    assert {id(weight) for weight in model.weights.values()} == {
        id(weight) for weight in model.parameters() if weight.requires_grad
    }


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks for it
def test_it_is_saved_alone_and_loads_here_and_by_peft(base: Path, preprocessor: TokensInput, tmp_path: Path):
    model, folder = trained(base, preprocessor), tmp_path / "adapter"
    save_model(model, language_model(preprocessor), folder)
    names = {file.name for file in folder.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors"} == {name for name in names if "adapter" in name}
    assert not names & {"model.safetensors", "config.json"}
    saved = load_file(folder / "adapter_model.safetensors")
    assert {name: list(weight.shape) for name, weight in saved.items()} == {
        name: list(weight.shape) for name, weight in model.weights.items()
    }
    expected = answers(model)
    loaded, _ = load_language_model(folder)
    torch.testing.assert_close(answers(loaded), expected)
    network = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    by_peft = PeftModel.from_pretrained(network, str(folder)).eval()
    with torch.inference_mode():
        logits = by_peft(input_ids=TOKENS, position_ids=POSITIONS, use_cache=False).logits
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


def test_merged_it_is_a_whole_model(base: Path, preprocessor: TokensInput, tmp_path: Path):
    model, folder, whole = trained(base, preprocessor), tmp_path / "adapter", tmp_path / "whole"
    save_model(model, language_model(preprocessor), folder)
    done = CliRunner().invoke(app, ["merge", str(folder), str(whole)], catch_exceptions=False)
    assert done.exit_code == 0
    (base / "model.safetensors").unlink()  # nothing is read of it
    merged, _ = load_language_model(whole)
    torch.testing.assert_close(answers(merged), answers(model), rtol=1e-4, atol=1e-5)
    assert not any("lora" in name for name in load_file(whole / "model.safetensors"))
    with pytest.raises(UserError, match="is not empty: give a new folder"):
        CliRunner().invoke(app, ["merge", str(folder), str(whole)], catch_exceptions=False)
    with pytest.raises(UserError, match="has a complete model: there is no adapter"):
        CliRunner().invoke(app, ["merge", str(whole), str(tmp_path / "other")], catch_exceptions=False)


LAYERS = {
    "llama": ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"],
    "gpt2": ["c_attn", "c_fc", "c_proj"],
}


def test_layers_are_chosen_by_the_ends_of_their_paths(base: Path, preprocessor: TokensInput):
    def layers(**lora: Any) -> set[str]:
        weights = build(spec(base, **lora), preprocessor).weights
        return {".".join(name.split(".lora_")[0].split(".")[-2:]) for name in weights}

    kind = AutoConfig.from_pretrained(base).model_type
    name = LAYERS[kind][-1]
    assert {layer.rpartition(".")[2] for layer in layers()} == set(LAYERS[kind])
    assert {layer.rpartition(".")[2] for layer in layers(targetModules=[name])} == {name}
    assert layers(targetModules=["1.mlp." + LAYERS[kind][-1]] if kind == "gpt2" else ["mlp.up_proj"]) == {
        "mlp.c_proj" if kind == "gpt2" else "mlp.up_proj"
    }


@pytest.mark.parametrize("wanted", ["absent", "mlp.absent", "proj", "mlp", "lm_head", "lora_A"])
def test_layers_that_are_not_there_are_named(base: Path, preprocessor: TokensInput, wanted: str):
    kind = AutoConfig.from_pretrained(base).model_type
    expected = f"^spec.model.causalLM.lora.targetModules: {kind} has no linear layer {wanted}; it has "
    with pytest.raises(UserError, match=f"{expected}{', '.join(LAYERS[kind])}$"):
        build(spec(base, targetModules=[LAYERS[kind][0], wanted]), preprocessor)


def test_damaged_adapters_are_named(base: Path, preprocessor: TokensInput, tmp_path: Path):
    model, folder = trained(base, preprocessor), tmp_path / "adapter"
    save_model(model, language_model(preprocessor), folder)
    file = folder / "adapter_config.json"
    config = json.loads(file.read_text())
    for changes, said in (
        ({"r": 8}, "the model is damaged: the adapter's weights are for another network"),
        ({"peft_type": "IA3"}, "the model is damaged: adapter_config.json is not of a LoRA adapter"),
        ({"base_model_name_or_path": "/absent"}, r"adapter_config\.json: there is no folder /absent"),
    ):
        file.write_text(json.dumps(config | changes))
        with pytest.raises(UserError, match=said):
            load_language_model(folder)
    file.write_text("{")
    with pytest.raises(UserError, match="the model is damaged"):
        load_language_model(folder)
