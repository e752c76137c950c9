"""The networks that gpu_speed.py trains, on rows of random tokens instead of a TrainJob's data."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertForSequenceClassification
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from trainjob.api import TrainJobSpec
from trainjob.data import Examples
from trainjob.data.batches.loaders import Shard
from trainjob.evaluation import Scores
from trainjob.kinds.causal_lm.network import CausalLMModule
from trainjob.kinds.causal_lm.packing import START, document_starts, next_tokens, unpacked
from trainjob.kinds.targets.next_token import NextToken
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import SavedCheckpoints
from trainjob.runs.files import ATTEMPTS
from trainjob.storage import Folder
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.placement import shard
from trainjob.worker.random_states import seed
from trainjob.worker.rank_data import rows_in_memory

CLASSES = ["a", "b", "c", "d"]
LEARNING_RATE = 1e-4


@dataclass(frozen=True)
class Size:
    """A training setup and its length."""

    steps: int
    warm_up: int
    length: int
    rows: int
    """Rows of a batch."""
    network: dict[str, Any]

    def tiny(self) -> "Size":
        small = {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "vocab_size": 128,
        }
        if "num_key_value_heads" in self.network:
            small["num_key_value_heads"] = 1
        return Size(steps=8, warm_up=2, length=32, rows=2, network=self.network | small)


BERT = Size(steps=60, warm_up=10, length=512, rows=64, network={"vocab_size": 30522})
LLAMA = Size(
    steps=20,
    warm_up=4,
    length=4096,
    rows=4,
    network={
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
)
BATCHES = 200
"""Batches of an epoch, of which the first are trained on; every tenth is recorded."""
TEXTS_A_ROW = 4
"""Texts per packed row."""


@dataclass(frozen=True)
class Tokens:
    """Replaces a preprocessor: rows of random tokens, all equally long unless `shortens`; packed for a language
    model."""

    size: Size
    packs: bool
    shortens: bool = False

    @property
    def input(self) -> "Tokens":
        return self

    @property
    def target(self) -> NextToken | OneClass:
        return NextToken() if self.packs else OneClass(CLASSES, [1] * len(CLASSES))

    def examples(self) -> Examples:
        chance, size = np.random.default_rng(0), self.size
        count = max(BATCHES, size.steps + 1) * size.rows
        values = chance.integers(5, size.network["vocab_size"], (count, size.length), dtype=np.int32)
        if self.packs:
            values[:, :: size.length // TEXTS_A_ROW] |= START
        labels, lengths = chance.integers(len(CLASSES), size=count), np.full(count, size.length)
        if self.shortens:
            lengths[::2] //= 2
        is_token = np.arange(size.length) < lengths[:, None]
        return Examples(values[is_token], np.concatenate([[0], np.cumsum(lengths)]), labels)

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        is_token = np.arange(self.size.length) < examples.lengths[:, None]
        codes = np.where(is_token, 0, -1).astype(np.int32)
        codes[is_token] = examples.values
        if not self.packs:
            return {"input_ids": codes.clip(0).astype(np.int64), "attention_mask": is_token.astype(np.int64)}
        arrays = unpack(codes)
        del arrays["labels"]  # which the target gives
        return arrays

    def save(self, folder: Path) -> None: ...


def unpack(codes: np.ndarray) -> dict[str, np.ndarray]:
    """A language model's input for rows, int32 [n, length]."""
    (tokens, positions), labels = unpacked(codes, 0), next_tokens(codes)
    return {"input_ids": tokens, "position_ids": positions, "starts": document_starts(codes), "labels": labels}


@dataclass(frozen=True)
class Case:
    """A network of a given size."""

    name: str
    size: Size
    device: torch.device
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    """Additional fields of `spec.training`."""
    shortens: bool = False
    """Whether rows have different lengths."""

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.size, self.is_language, self.shortens)

    @property
    def is_language(self) -> bool:
        return self.name == "llama"

    def network(self, device: torch.device | None = None) -> Any:
        torch.manual_seed(0)
        options: dict[str, Any] = self.size.network | {"max_position_embeddings": self.size.length}
        with device or self.device:
            if self.is_language:
                return LlamaForCausalLM(LlamaConfig(**options, tie_word_embeddings=True))
            return BertForSequenceClassification(BertConfig(**(options | {"num_labels": len(CLASSES)})))

    def module(self) -> Any:
        module = CausalLMModule(self.network()) if self.is_language else TextModule(self.network())
        if self.device.type == "cuda" and not self.training.keys() & {"sharding", "activationCheckpointing"}:
            module.round_weights()
        return module

    @property
    def spec(self) -> TrainJobSpec:
        model = {"causalLM": {"decoder": {}}} if self.is_language else {"textClassifier": {"encoder": {}}}
        columns = {"text": ["text"]} | ({} if self.is_language else {"label": "label"})
        return TrainJobSpec.model_validate(
            {
                "model": model,
                "dataset": {"train": {"uri": "nowhere.csv"}} | columns,
                "training": {
                    "batchSize": self.size.rows,
                    "epochs": 1,
                    "maxSteps": self.size.steps,
                    "precision": "bf16",
                    "gradientClipping": 1.0,
                    "optimizer": {"adamW": {"learningRate": LEARNING_RATE}},
                    "scheduler": {"constant": {}},
                }
                | self.training,
                "workers": {"count": 2 if "sharding" in self.training else 1},
            }
        )

    @property
    def flops_a_token(self) -> float:
        """Operations of a forward and backward pass: 6 per multiplying weight, plus attention's, of which a language
        model computes half (Chowdhery et al., 2022, https://arxiv.org/abs/2204.02311, appendix B)."""
        network, size = self.network(torch.device("meta")), self.size
        weights = sum(parameter.numel() for parameter in network.parameters())
        looked_up = (
            0
            if self.is_language
            else sum(each.weight.numel() for each in network.modules() if isinstance(each, torch.nn.Embedding))
        )
        config = network.config
        seen = size.length / TEXTS_A_ROW / 2 if self.is_language else size.length
        return 6 * (weights - looked_up) + 12 * config.num_hidden_layers * config.hidden_size * seen


class NoScores:
    """Replaces a Scorer: scoring is not measured."""

    def score(self, module: Any, name: str) -> Scores:
        raise Trained


class Trained(Exception):
    """Raised when the steps are done."""


def trainer_of(case: Case, folder: Path, kind: type[Trainer] = Trainer) -> Trainer:
    run, spec, tokens = Folder(str(folder / "run")), case.spec, case.tokens
    run.write(ATTEMPTS, b"{}")
    seed(0)
    module, rows = case.module(), Shard(0, 1, case.size.rows, 0)
    if spec.training.activation_checkpointing:
        module.recompute_activations()
    if spec.training.sharding == "full":
        shard(module, spec.training, case.device, (1, 1))
    if spec.training.compile:
        module.compile()
    trainer = kind(
        TrainerInputs(
            spec=spec,
            preprocessor=tokens,  # pyrefly: ignore[bad-argument-type]
            module=module,
            model=module,
            device=case.device,
            data=rows_in_memory({"train": tokens.examples()}, tokens, rows),  # pyrefly: ignore[bad-argument-type]
            run=run,
            scratch=Path(tempfile.mkdtemp(dir=folder)),
            reporter=Reporter(None, SavedCheckpoints(run, spec.checkpoints), 1),
        )
    )
    trainer.scorer = NoScores()  # pyrefly: ignore[bad-assignment]
    return trainer
