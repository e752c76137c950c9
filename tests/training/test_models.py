"""Each kind of model and of data, from end to end."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from training_runs import Run
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from trainjob import Predictor

NewRun = Callable[..., Run]

LOCAL = {"dataset.loader": "dataLoader", "training.epochs": 3}


def test_an_image_folder_and_a_cnn(new_run: NewRun, image_set: Path):
    run = new_run("image", LOCAL)
    run.finish()
    assert run.read("evaluation.json")["test"]["accuracy"] > 0.9
    file = sorted((image_set / "test").glob("digit-3/*.png"))[0]
    assert Predictor.load(run.folder).classes == [f"digit-{number}" for number in range(5)]
    assert Predictor.load(run.folder).predict([file]) == ["digit-3"]


@pytest.fixture
def idx_set(tmp_path: Path) -> Path:
    """The digits 0 to 9 as MNIST has them; the training files gzipped."""
    pixels, digits = load_digits(return_X_y=True)
    images, labels = (pixels.reshape(-1, 8, 8) * 15).astype(np.uint8), digits.astype(np.uint8)
    for name, rows in (("train", slice(0, 1400)), ("t10k", slice(1400, None))):
        count = len(labels[rows])
        files = {
            f"{name}-images-idx3-ubyte": struct.pack(">IIII", 0x0803, count, 8, 8) + images[rows].tobytes(),
            f"{name}-labels-idx1-ubyte": struct.pack(">II", 0x0801, count) + labels[rows].tobytes(),
        }
        for file, content in files.items():
            if name == "train":
                (tmp_path / f"{file}.gz").write_bytes(gzip.compress(content))
            else:
                (tmp_path / file).write_bytes(content)
    return tmp_path


def test_idx_files_and_an_mlp(new_run: NewRun, idx_set: Path):
    changes = {
        "model": {"imageClassifier": {"mlp": {"hidden": [64]}}},
        "dataset.train": {"uri": str(idx_set / "train-images-idx3-ubyte.gz")},
        "dataset.test": {"uri": str(idx_set / "t10k-images-idx3-ubyte")},
        "training.optimizer": {"adam": {"learningRate": 0.01}},
    }
    run = new_run("image", LOCAL | changes)
    run.finish()
    assert run.read("evaluation.json")["test"]["rows"] == 397
    assert run.read("evaluation.json")["test"]["accuracy"] > 0.85


@pytest.fixture
def pretrained(tmp_path: Path) -> Path:
    """A tiny BERT with random weights, as transformers saves one."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"{color}{number}" for color in ("blue", "green", "grey", "red") for number in range(20)]
    words += [f"word{number}" for number in range(150)]
    tokenizer = Tokenizer(WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    folder = tmp_path / "encoder"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("frozen", [False, True])
def test_a_pretrained_encoder(new_run: NewRun, pretrained: Path, frozen: bool):
    """Its own weights are where training begins, and where they stay when it is frozen."""
    model = {"textClassifier": {"pretrained": "encoder", "freezeEncoder": frozen}}
    run = new_run("text", LOCAL | {"model": model, "training.batchSize": 64})
    run.finish()
    name = "embeddings.word_embeddings.weight"
    before, after = BertModel.from_pretrained(pretrained).state_dict()[name], run.weights()[f"bert.{name}"]
    assert torch.equal(before, after) == frozen
    torch.testing.assert_close(after, before, atol=0.2, rtol=0)
    assert Predictor.load(run.folder).predict(["red1 red2"])[0] in ("blue", "green", "grey", "red")
