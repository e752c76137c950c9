"""Pruning chooses heads and channels by importance, and refuses unknown architectures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.modeling_utils import PreTrainedModel
from transformers.models.bert import BertConfig, BertForSequenceClassification
from transformers.models.distilbert import DistilBertConfig, DistilBertForSequenceClassification
from transformers.models.gpt2 import GPT2Config, GPT2ForSequenceClassification
from transformers.models.modernbert import ModernBertConfig, ModernBertForSequenceClassification
from transformers.models.roberta import RobertaConfig, RobertaForSequenceClassification

from trainjob.compress.prune import blocks_of, prune
from trainjob.data.batches.batch import Batch
from trainjob.errors import UserError
from trainjob.kinds.targets.class_losses import cross_entropy
from trainjob.kinds.text_classifier.network import PRUNED, TextModule, load

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
}
DISTIL_SIZES: dict[str, Any] = {"vocab_size": 50, "dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}
SPECIAL: dict[str, Any] = {
    "pad_token_id": 0,
    "cls_token_id": 1,
    "bos_token_id": 1,
    "sep_token_id": 2,
    "eos_token_id": 2,
}
MAKERS: dict[str, Callable[[], PreTrainedModel]] = {
    "modernbert": lambda: ModernBertForSequenceClassification(ModernBertConfig(**SIZES, **SPECIAL)),
    "bert": lambda: BertForSequenceClassification(BertConfig(**SIZES)),
    "roberta": lambda: RobertaForSequenceClassification(RobertaConfig(**SIZES)),
    "distilbert": lambda: DistilBertForSequenceClassification(DistilBertConfig(**DISTIL_SIZES)),
}


def batches(count: int = 3) -> list[Batch]:
    chance = torch.Generator().manual_seed(0)
    tokens = [torch.randint(3, 50, (6, 9), generator=chance) for _ in range(count)]
    return [Batch({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, torch.arange(6) % 2) for ids in tokens]


@pytest.mark.parametrize("name", MAKERS)
def test_what_does_nothing_goes_first(name: str) -> None:
    """Half of the heads and channels of each layer have no effect: without them, the logits are the same."""
    torch.manual_seed(0)
    classifier = TextModule(MAKERS[name]())
    blocks = blocks_of(classifier.network)
    assert [block.width for block in blocks].count(4) == 2
    assert [block.width for block in blocks].count(1) == 2
    chance = torch.Generator().manual_seed(1)
    for block in blocks:
        weight = classifier.network.get_parameter(f"{block.taker}.weight")
        units = weight.shape[1] // block.width
        idle = torch.randperm(units, generator=chance)[: units // 2]
        with torch.no_grad():
            weight.reshape(len(weight), units, block.width)[:, idle] = 0
    inputs = batches()[0].inputs
    classifier.eval()
    with torch.inference_mode():
        before = classifier(**inputs)
        size = sum(parameter.numel() for parameter in classifier.parameters())
    prune(classifier, 0.5, batches(), cross_entropy)
    with torch.inference_mode():
        torch.testing.assert_close(classifier(**inputs), before, rtol=1e-4, atol=1e-5)
    assert sum(parameter.numel() for parameter in classifier.parameters()) < size


def test_one_head_always_stays() -> None:
    classifier = TextModule(MAKERS["bert"]())
    prune(classifier, 0.99, batches(1), cross_entropy)
    assert classifier.network.get_parameter("bert.encoder.layer.0.attention.self.query.weight").shape == (4, 16)
    assert classifier.network.get_parameter("bert.encoder.layer.1.intermediate.dense.weight").shape == (1, 16)
    assert classifier(**batches(1)[0].inputs).shape == (6, 2)


def test_what_was_pruned_may_be_pruned_again() -> None:
    classifier = TextModule(MAKERS["modernbert"]())
    for heads in (2, 1):
        prune(classifier, 0.5, batches(1), cross_entropy)
        assert classifier.network.get_parameter("model.layers.1.attn.Wqkv.weight").shape == (3 * 4 * heads, 16)
    assert classifier.network.config.trainjob_pruned["model.layers.1.attn.Wqkv"] == (16, 12)


@pytest.mark.parametrize(
    "shapes", [{"no.layer": [4, 4]}, {"model.layers.0": [4, 4]}, {"classifier": 3}, {"classifier": ["a", 1]}, [1], "x"]
)
def test_a_config_that_names_no_layers_is_damaged(shapes: Any, tmp_path: Path) -> None:
    classifier = TextModule(MAKERS["modernbert"]())
    setattr(classifier.network.config, PRUNED, shapes)
    classifier.save(tmp_path)
    with pytest.raises(ValueError, match=r"trainjob_pruned"):
        load(tmp_path)


def test_another_architecture_is_refused() -> None:
    network = GPT2ForSequenceClassification(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2))
    with pytest.raises(UserError, match="a model of the type gpt2 cannot be pruned; supported encoders are"):
        prune(TextModule(network), 0.5, batches(1), cross_entropy)
