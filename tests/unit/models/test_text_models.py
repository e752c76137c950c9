import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel
from transformers.models.big_bird.configuration_big_bird import BigBirdConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdModel
from transformers.models.mpnet.configuration_mpnet import MPNetConfig
from transformers.models.mpnet.modeling_mpnet import MPNetModel
from transformers.models.roberta.configuration_roberta import RobertaConfig
from transformers.models.roberta.modeling_roberta import RobertaModel

from preprocessors import input_of
from through_checkpoint import carry
from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.one_class import OneClass
from trainjob.models import build, load_model, save_model
from trainjob.pretrained.tokenizers import length_multiple

Inputs = dict[str, torch.Tensor]
MakeModel = Callable[..., Model]

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 20,
}


@pytest.fixture
def pretrained(tmp_path: Path, text_preprocessor: Preprocessor) -> Path:
    """A tiny BERT without a head."""
    folder = tmp_path / "tiny-bert"
    vocabulary = input_of(text_preprocessor, TextInput).vocabulary_size
    BertModel(BertConfig(vocab_size=vocabulary, **SIZES)).save_pretrained(folder)
    return folder


def logits(module: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
    with torch.inference_mode():
        return module.eval()(**inputs)


def test_a_saved_encoder_loads_here_and_in_transformers_with_the_same_logits(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    module = build(text_model(), text_preprocessor)
    expected = logits(module, text_inputs)
    save_model(module, text_preprocessor, tmp_path / "model")

    loaded, preprocessor = load_model(tmp_path / "model")
    assert not loaded.training
    assert preprocessor.target.classes == text_preprocessor.target.classes
    assert torch.equal(logits(loaded, text_inputs), expected)

    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "model")
    texts = ["the cat sat on the mat", "dogs bark at night", "a cat", "one dog and another dog went out for a walk"]
    tokens = tokenizer(texts, padding=True, truncation=True, pad_to_multiple_of=length_multiple(), return_tensors="pt")
    assert torch.equal(tokens["input_ids"], text_inputs["input_ids"])
    with torch.inference_mode():
        assert torch.equal(network(**tokens).logits, expected)
    assert network.config.id2label == {0: "bird", 1: "cat", 2: "dog"}
    assert network.config.problem_type == "single_label_classification"


def test_the_same_seed_gives_the_same_weights(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.cat([value.flatten() for value in build(text_model(), text_preprocessor).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_padding_does_not_change_logits(
    text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    module = build(text_model(), text_preprocessor)
    length = int(text_inputs["attention_mask"][2].sum())
    alone = {name: tensor[2:3, :length] for name, tensor in text_inputs.items()}
    torch.testing.assert_close(logits(module, alone), logits(module, text_inputs)[2:3])


def test_logits_are_float32_under_autocast(
    text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert build(text_model(), text_preprocessor)(**text_inputs).dtype == torch.float32


def test_a_checkpoint_restores_a_module_that_was_built_anew(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    saved, other = build(text_model(), text_preprocessor), build(text_model(), text_preprocessor)
    carry(saved, other, tmp_path)
    assert torch.equal(logits(other, text_inputs), logits(saved, text_inputs))


def test_a_pretrained_encoder_gets_a_new_head(
    pretrained: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    module = build(text_model(pretrained=str(pretrained), dropout=0.4), text_preprocessor)
    assert logits(module, text_inputs).shape == (4, 3)
    weights = safetensors.torch.load_file(pretrained / "model.safetensors")
    embeddings = module.network.get_input_embeddings().weight
    assert torch.equal(embeddings, weights["embeddings.word_embeddings.weight"])
    assert module.network.dropout.p == 0.4
    assert {part.p for part in module.network.bert.modules() if isinstance(part, torch.nn.Dropout)} == {0.1}


def test_dropout_reaches_a_head_whose_configuration_has_no_name_for_it(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    MPNetModel(MPNetConfig(vocab_size=200, **SIZES)).save_pretrained(tmp_path)
    module = build(text_model(pretrained=str(tmp_path), dropout=0.4), text_preprocessor)
    assert module.network.classifier.dropout.p == 0.4


def test_what_no_answer_depends_on_is_frozen(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    """BigBird has a pooler that its classifier does not ask."""
    BigBirdModel(BigBirdConfig(vocab_size=200, attention_type="original_full", **SIZES)).save_pretrained(tmp_path)
    module = build(text_model(pretrained=str(tmp_path)), text_preprocessor)
    assert module.training
    module(**text_inputs).sum().backward()
    weights = dict(module.named_parameters())
    assert [name for name, value in weights.items() if value.requires_grad != (value.grad is not None)] == []
    assert {name.rpartition(".")[0] for name, value in weights.items() if not value.requires_grad} == {
        "network.bert.pooler"
    }


def test_only_the_head_of_a_frozen_encoder_learns(
    pretrained: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    module = build(text_model(pretrained=str(pretrained), freezeEncoder=True, dropout=0.0), text_preprocessor).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    assert torch.equal(module(**text_inputs), module(**text_inputs)), "the encoder drops activations"

    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(**text_inputs).logsumexp(dim=1).sum().backward()
    optimizer.step()
    changed = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"network.classifier.weight", "network.classifier.bias"}


def test_a_checkpoint_with_a_head_for_other_classes_is_taken(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    other = replace(text_preprocessor, target=OneClass(["x", "y"], [1, 1]))
    save_model(build(text_model(), other), other, tmp_path)
    module = build(text_model(pretrained=str(tmp_path)), text_preprocessor)
    assert logits(module, text_inputs).shape == (4, 3)


def test_a_checkpoint_in_half_precision_with_old_names_trains_in_float32_and_resumes(
    tmp_path: Path, pretrained: Path, text_model: MakeModel, text_preprocessor: Preprocessor, text_inputs: Inputs
) -> None:
    """The weights are named as in bert-base-uncased: LayerNorm.gamma and LayerNorm.beta."""
    file = pretrained / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value.half()
        for name, value in weights.items()
    }
    safetensors.torch.save_file(old, file, metadata={"format": "pt"})
    config = json.loads((pretrained / "config.json").read_text())
    (pretrained / "config.json").write_text(json.dumps(config | {"dtype": "float16"}))

    spec = text_model(pretrained=str(pretrained))
    module = build(spec, text_preprocessor)
    assert {value.dtype for value in module.parameters()} == {torch.float32}
    stored = build(spec, text_preprocessor, as_stored=True)
    assert {value.dtype for value in stored.parameters()} == {torch.float16}
    assert [*stored.sharding_units()][-1] is stored
    for name, value in module.network.bert.named_parameters():
        assert torch.equal(stored.network.bert.get_parameter(name), value), name
    assert {value.dtype for value in stored.parameters()} == {torch.float32}
    save_model(module, text_preprocessor, tmp_path / "model")
    resumed = build(spec, text_preprocessor)
    carry(module, resumed, tmp_path / "checkpoint")
    loaded, _ = load_model(tmp_path / "model")
    expected = logits(module, text_inputs)
    assert torch.equal(logits(resumed, text_inputs), expected)
    assert torch.equal(logits(loaded, text_inputs), expected)


@pytest.mark.parametrize(
    ("network", "longest"),
    [
        (lambda size: BertModel(BertConfig(vocab_size=size, **SIZES)), 20),
        (lambda size: RobertaModel(RobertaConfig(vocab_size=size, pad_token_id=1, **SIZES)), 18),
    ],
    ids=["bert", "roberta"],
)
def test_max_length_is_checked_against_the_positions(
    tmp_path: Path,
    text_model: MakeModel,
    text_preprocessor: Preprocessor,
    network: Callable[[int], PreTrainedModel],
    longest: int,
) -> None:
    network(input_of(text_preprocessor, TextInput).vocabulary_size).save_pretrained(tmp_path)
    module = build(text_model(pretrained=str(tmp_path), maxLength=longest), text_preprocessor)
    tokens = torch.full((1, longest), 5)
    assert logits(module, {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}).shape == (1, 3)
    with pytest.raises(UserError, match=rf"maxLength: .* takes at most {longest} tokens, not {longest + 1}"):
        build(text_model(pretrained=str(tmp_path), maxLength=longest + 1), text_preprocessor)


def test_a_tokenizer_of_another_model_is_refused(
    tmp_path: Path, text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    BertModel(BertConfig(vocab_size=10, **SIZES)).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="files of two models"):
        build(text_model(pretrained=str(tmp_path)), text_preprocessor)


def test_what_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    with pytest.raises(UserError, match=r"pretrained: there is no folder .*/missing"):
        build(text_model(pretrained=str(tmp_path / "missing")), text_preprocessor)

    with pytest.raises(UserError, match=r"cannot load '.*', which must be a folder with a transformers encoder"):
        build(text_model(pretrained=str(tmp_path)), text_preprocessor)

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        UserError, match=r"cannot be reached to load no-such/encoder .*; connect to the network, or give a folder"
    ):
        build(text_model(pretrained="no-such/encoder"), text_preprocessor)


def test_damaged_weights_are_named(
    tmp_path: Path, pretrained: Path, text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    save_model(build(text_model(), text_preprocessor), text_preprocessor, tmp_path / "model")
    for folder in (pretrained, tmp_path / "model"):
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UserError, match="pretrained: cannot load"):
        build(text_model(pretrained=str(pretrained)), text_preprocessor)
    with pytest.raises(UserError, match="the model is damaged"):
        load_model(tmp_path / "model")
