"""Training that begins with a pretrained network."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from ranks import run_on
from tiny_image_models import save_vit
from tiny_sets import write_digits
from trainjob import Predictor
from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.driver.built_in import BuiltInTraining
from trainjob.errors import DataError
from trainjob.evaluation import ClassificationScores
from trainjob.progress.channel import Address
from trainjob.runs.files import ATTEMPTS
from trainjob.storage import Folder
from trainjob.worker.job import WorkerJob
from trainjob.worker.outcome import Outcome
from trainjob.worker.train import train_and_score

COLORS = ("blue", "red")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A tiny BERT with random weights, as transformers saves one."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *COLORS, *(str(number) for number in range(30))]
    tokenizer = Tokenizer(WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    folder = tmp_path / "encoder"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("frozen", [False, True])
def test_the_encoders_weights_are_where_training_begins_and_stay_where_it_is_frozen(
    tmp_path: Path, encoder: Path, frozen: bool
):
    rows = "".join(f"{COLORS[row % 2]} {row},{COLORS[row % 2]}\n" for row in range(30))
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    spec = TrainJobSpec.model_validate(
        {
            "model": {"textClassifier": {"pretrained": str(encoder), "freezeEncoder": frozen}},
            "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "text": ["text"], "label": "label"},
            "training": {"epochs": 3, "batchSize": 8, "optimizer": {"adamW": {"learningRate": 0.01}}},
        }
    )
    fitted = fit(spec)
    examples = partial(dict, prepare_examples(spec, fitted))
    run = tmp_path / "run"
    Folder(str(run)).write(ATTEMPTS, b"{}")  # a run has begun here
    fitted.save(Folder(str(run / "fitted")))
    run_on(
        1,
        train_and_score,
        WorkerJob(spec, Folder(str(run)), 1, fitted, Address("127.0.0.1", 1, b""), threads=1, examples=examples),
    )
    name = "embeddings.word_embeddings.weight"
    before = BertModel.from_pretrained(encoder).state_dict()[name]
    after = load_file(run / "model" / "model.safetensors")[f"bert.{name}"]
    assert torch.equal(before, after) == frozen
    torch.testing.assert_close(after, before, atol=0.2, rtol=0)
    assert Predictor.load(run / "model").predict(["red 7"])[0] in COLORS


def test_an_encoder_that_cannot_be_had_is_told_before_ray_starts(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("text,label\n" + "".join(f"{row},{COLORS[row % 2]}\n" for row in range(30)))
    spec = TrainJobSpec.model_validate(
        {
            "model": {"textClassifier": {"pretrained": "/nowhere/encoder"}},
            "dataset": {
                "train": {"uri": str(tmp_path / "rows.csv")},
                "text": ["text"],
                "label": "label",
                "loader": "rayData",
            },
        }
    )
    training = BuiltInTraining(
        spec, Folder(str(tmp_path / "run")), 1, Address("127.0.0.1", 9, b""), 1, lambda train: train(), lambda: None
    )
    with pytest.raises(DataError, match="there is no folder /nowhere/encoder"):
        training.train()
    assert not ray.is_initialized()


def image_spec(folder: Path, network: Path, **training: Any) -> TrainJobSpec:
    settings: dict[str, Any] = {
        "epochs": 2,
        "batchSize": 64,
        "optimizer": {"adamW": {"learningRate": 0.01}},
        "precision": "float32",
    }
    return TrainJobSpec.model_validate(
        {
            "model": {"imageClassifier": {"pretrained": str(network)}},
            "dataset": {"train": {"uri": str(folder / "train")}, "test": {"uri": str(folder / "test")}},
            "training": settings | training,
        }
    )


def test_grey_images_train_a_pretrained_network(tmp_path: Path):
    digits = write_digits(tmp_path / "digits")
    spec = image_spec(digits, save_vit(tmp_path / "vit"))
    fitted = fit(spec)
    assert (fitted.preprocessor.target.classes, fitted.preprocessor.input.row_bytes) == (
        [f"digit-{digit}" for digit in range(5)],
        16 * 16 * 3 + 16,
    )
    examples = partial(dict, prepare_examples(spec, fitted))
    run = tmp_path / "run"
    Folder(str(run)).write(ATTEMPTS, b"{}")  # a run has begun here
    fitted.save(Folder(str(run / "fitted")))
    assert Fitted.load(Folder(str(run / "fitted"))) == fitted
    task = WorkerJob(spec, Folder(str(run)), 1, fitted, Address("127.0.0.1", 1, b""), threads=1, examples=examples)
    (outcome,) = run_on(1, train_and_score, task)
    assert isinstance(outcome, Outcome)
    assert isinstance(outcome.test, ClassificationScores)
    assert outcome.test.accuracy > 0.6
    image = next((digits / "test" / "digit-0").iterdir())
    assert Predictor.load(run / "model").predict([image]) == ["digit-0"]


def test_a_network_for_images_that_has_no_processor_is_told_before_rows_are_read(tmp_path: Path):
    save_vit(tmp_path / "vit")
    (tmp_path / "vit" / "preprocessor_config.json").unlink()
    spec = image_spec(write_digits(tmp_path / "digits"), tmp_path / "vit")
    with pytest.raises(DataError, match=r"^spec.model.imageClassifier.pretrained: .*/vit has no usable image pr"):
        fit(spec)
