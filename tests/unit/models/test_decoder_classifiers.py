"""Decoders as text classifiers: they classify by the last token of a text, which padding must not hide."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.qwen2.configuration_qwen2 import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2ForCausalLM
from transformers.models.xlnet.configuration_xlnet import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import XLNetLMHeadModel

from trainjob import Predictor
from trainjob.api import TrainJobSpec
from trainjob.compress.export import export
from trainjob.compress.prune import blocks_of
from trainjob.data import Examples, Preprocessor, fit
from trainjob.data.read.rows import row_number
from trainjob.errors import DataError, UserError
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.models import TrainableClassifier, build, load_model, save_model

END = "<|endoftext|>"
TEXTS = ["good hello world", "bad bad bar foo foo foo foo", "x", "a text of very many words and more words than others"]
SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
}
NETWORKS: dict[str, Callable[[], PreTrainedModel]] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, num_key_value_heads=2, pad_token_id=7)),
    "xlnet": lambda: XLNetLMHeadModel(XLNetConfig(vocab_size=300, d_model=16, n_layer=1, n_head=2, d_inner=32)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=16, n_layer=1, n_head=2, n_positions=64)),
}


def save_decoder(folder: Path, name: str, **config: Any) -> Path:
    """Saves a decoder whose tokenizer adds nothing before or after a text."""
    NETWORKS[name]().save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[END, "<|pad|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 9, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | config))
    return folder


def classifier(folder: Path) -> tuple[TrainableClassifier[Any], Preprocessor]:
    """A classifier with two classes on the decoder in `folder`."""
    rows = [f"{word} {number},{word}" for word in ("good", "bad") for number in range(12)]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows, ",bad"]))
    spec = TrainJobSpec.model_validate(
        {
            "model": {"textClassifier": {"pretrained": str(folder), "maxLength": 32}},
            "dataset": {"train": {"uri": str(folder / "rows.csv")}, "text": ["text"], "label": "label"},
        }
    )
    preprocessor = fit(spec).preprocessor
    module = build(spec.model, preprocessor)
    assert isinstance(module, TrainableClassifier)
    return module, preprocessor


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("pad", [None, "<|pad|>"])
def test_padding_changes_nothing_here_and_in_transformers(tmp_path: Path, name: str, pad: str | None):
    special = {"eos_token": END} | ({"pad_token": pad} if pad else {})
    special |= {"padding_side": "left"} if name == "xlnet" else {}  # as its own tokenizer's class has it
    module, preprocessor = classifier(save_decoder(tmp_path / "base", name, **special))
    save_model(module, preprocessor, tmp_path / "model")
    predictor = Predictor.load(tmp_path / "model")
    texts = [*TEXTS, "", f"ends with {END}"]
    together, alone = predictor.outputs(texts), torch.cat([predictor.outputs([text]) for text in texts])
    torch.testing.assert_close(together, alone)
    assert len({tuple(row) for row in together.tolist()}) == len(texts), "each text has its own answer"

    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert tokenizer.pad_token == (pad or END)
    others = [text for text in texts if text]
    with torch.inference_mode():
        theirs = network(**tokenizer(others, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(predictor.outputs(others), theirs)


def test_empty_texts_alone_have_an_answer(tmp_path: Path):
    module, preprocessor = classifier(save_decoder(tmp_path, "qwen2", eos_token=END))
    inputs = inputs_of(preprocessor, ["", ""])
    assert inputs["attention_mask"].tolist() == [[1], [1]]
    assert module.eval()(**inputs).isfinite().all()


def inputs_of(preprocessor: Preprocessor, texts: list[str]) -> dict[str, torch.Tensor]:
    values = preprocessor.input.transform(pa.table({"text": texts}), row_number)
    inputs = preprocessor.input.batch(Examples.from_table(pa.table({"values": values})))
    lengths = inputs["attention_mask"].sum(axis=1)
    kept = slice(0, int(lengths.max()))  # without what a machine with bfloat16 pads besides
    return {name: torch.from_numpy(array[:, kept]) for name, array in inputs.items()}


def test_onnx_gives_the_same_and_pruning_is_refused(tmp_path: Path):
    module, preprocessor = classifier(save_decoder(tmp_path / "base", "llama", eos_token=END))
    save_model(module, preprocessor, tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model")
    assert isinstance(loaded, TextModule)
    with pytest.raises(UserError, match="a model of the type llama cannot be pruned"):
        blocks_of(loaded.network)
    (tmp_path / "onnx").mkdir()
    batches = [inputs_of(preprocessor, texts) for texts in (TEXTS, TEXTS[:2], ["", "x"])]
    export(loaded, preprocessor, batches, tmp_path / "onnx")  # compares the logits of all batches


def test_a_tokenizer_without_padding_and_end_is_refused_before_training(tmp_path: Path):
    with pytest.raises(DataError, match=r"^spec\.model\.textClassifier\.pretrained: .* has no padding token: name a"):
        classifier(save_decoder(tmp_path, "llama"))
