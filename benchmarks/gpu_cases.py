"""The networks that gpu_speed.py trains, on rows of random tokens, in the place of what a TrainJob names."""

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
from trainjob.data.loaders import InMemoryBatches, Shard
from trainjob.data.packing import START, unpacked
from trainjob.evaluation import AnyScores
from trainjob.models import objective_of
from trainjob.models.causal import CausalLM
from trainjob.models.text import TextClassifier
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import CheckpointStore
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.history import History
from trainjob.storage import Folder
from trainjob.training.loop import Trainer
from trainjob.training.randomness import seed

CLASSES = ["a", "b", "c", "d"]
LEARNING_RATE = 1e-4


@dataclass(frozen=True)
class Size:
    """What is trained, and for how long."""

    steps: int
    warm_up: int
    length: int
    rows: int
    """Of a batch."""
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
    rows=2,
    network={
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
)
TEXTS_A_ROW = 4
"""Of a packed row."""


@dataclass(frozen=True)
class Tokens:
    """In the place of a preprocessor: rows of random tokens, all equally long; of a language model, packed ones."""

    size: Size
    packs: bool
    classes: list[str] = field(default_factory=lambda: CLASSES)
    class_counts: list[int] = field(default_factory=lambda: [1] * len(CLASSES))

    def examples(self) -> Examples:
        chance, size = np.random.default_rng(0), self.size
        count = (size.steps + 1) * size.rows
        values = chance.integers(5, size.network["vocab_size"], (count, size.length), dtype=np.int32)
        if self.packs:
            values[:, :: size.length // TEXTS_A_ROW] |= START
        labels = chance.integers(len(CLASSES), size=count)
        return Examples(values.reshape(-1), np.arange(count + 1) * size.length, labels)

    def inputs(self, examples: Examples) -> dict[str, np.ndarray]:
        codes = examples.values.reshape(-1, self.size.length)
        if not self.packs:
            return {"input_ids": codes.astype(np.int64), "attention_mask": np.ones(codes.shape, np.int64)}
        tokens, positions, labels = unpacked(codes, 0)
        return {"input_ids": tokens, "position_ids": positions, "labels": labels}

    def save(self, folder: Path) -> None: ...


def _on(network: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    return network.to(device)


@dataclass(frozen=True)
class Case:
    """One network in one size."""

    name: str
    size: Size
    device: torch.device

    @property
    def is_language(self) -> bool:
        return self.name == "llama"

    def network(self) -> Any:
        torch.manual_seed(0)
        size = self.size
        if self.is_language:
            config = LlamaConfig(**size.network, max_position_embeddings=size.length, tie_word_embeddings=True)
            return _on(LlamaForCausalLM(config), self.device)
        labels: Any = {"num_labels": len(CLASSES)}
        config = BertConfig(**size.network, max_position_embeddings=size.length, **labels)
        return _on(BertForSequenceClassification(config), self.device)

    def module(self) -> Any:
        return CausalLM(self.network()) if self.is_language else TextClassifier(self.network())

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
                },
            }
        )

    @property
    def flops_a_token(self) -> float:
        """Of a forward and a backward pass: 6 for each weight that multiplies, and attention's, of which a
        language model computes half (Chowdhery et al., 2022, https://arxiv.org/abs/2204.02311, appendix B)."""
        network, size = self.network(), self.size
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
    """In the place of a Scorer: scoring is not what is measured."""

    def score(self, module: Any, name: str) -> AnyScores:
        raise Trained


class Trained(Exception):
    """The steps are done."""


def trainer_of(case: Case, folder: Path, kind: type[Trainer] = Trainer, compiled: bool = False) -> Trainer:
    run, spec, tokens = Folder(str(folder / "run")), case.spec, Tokens(case.size, case.is_language)
    run.write(ATTEMPTS, b"{}")
    seed(0)
    module, shard = case.module(), Shard(0, 1, case.size.rows, 0)
    objective = objective_of(spec, tokens, module)  # pyrefly: ignore[bad-argument-type]
    if compiled:
        module.compile()
    store, examples = CheckpointStore(run, spec.checkpoints), tokens.examples()
    return kind(
        spec,
        module,
        module,
        preprocessor=tokens,  # pyrefly: ignore[bad-argument-type]
        objective=objective,
        batches=InMemoryBatches(examples, tokens, shard),  # pyrefly: ignore[bad-argument-type]
        batches_per_epoch=shard.batches(len(examples)),
        scorer=NoScores(),  # pyrefly: ignore[bad-argument-type]
        store=store,
        reporter=Reporter(None, store, spec.checkpoints.metric, 1),
        history=History(run, Path(tempfile.mkdtemp(dir=folder))),
        device=case.device,
    )
