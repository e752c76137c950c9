"""Trainers of tiny models on rows in memory: their inputs, how to run them, and their results."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.distributed.tensor import DTensor

from preprocessors import image_classifier, text_classifier
from tiny_image_models import save_resnet
from trainjob.api import Cleaning, TrainJobSpec
from trainjob.api.training_status import TrainingStatus
from trainjob.data import Examples, Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import InMemoryBatches, Shard
from trainjob.data.read.image_files import image_tensor
from trainjob.evaluation import ClassificationScores, Confusion, classification_scores
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, pretrained_processor
from trainjob.kinds.inputs.text import TextInput, train_wordpiece
from trainjob.progress.channel import Sender
from trainjob.progress.reporter import Reporter
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.history import read_history
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore, TrainingState
from trainjob.worker.distributed import rank, world_size
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.placement import build_for, to_device_or_shard
from trainjob.worker.random_states import seed
from trainjob.worker.rank_data import rows_in_memory
from trainjob.worker.scoring import Predicted, Scorer

CLASSES = ["blue", "green", "red"]
CPU = torch.device("cpu")

MLP = {"imageClassifier": {"mlp": {"hidden": [8]}, "dropout": 0.0}}
CNN = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 8}, "dropout": 0.3}}
"""A network with batch normalization."""
TEXT = {
    "textClassifier": {
        "encoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 100},
        "maxLength": 16,
        "dropout": 0.3,
    }
}


@dataclass(frozen=True)
class Setup:
    """The inputs for the trainer of a rank."""

    folder: Path
    """The run's folder."""
    spec: TrainJobSpec
    preprocessor: Preprocessor
    examples: dict[str, Examples]
    """Rows of `train` and `validation`."""
    script: list[tuple[float, int]] | None = None
    """Instead of a validation: the loss, and how many rows of ten are predicted rightly, epoch by epoch."""

    def __post_init__(self) -> None:
        Folder(str(self.folder)).write(ATTEMPTS, b"{}")  # a run has begun here

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(Folder(str(self.folder)), self.spec.checkpoints)

    def elsewhere(self, folder: Path) -> "Setup":
        return replace(self, folder=folder)

    def shard(self, rank: int, ranks: int) -> Shard:
        return Shard(rank, ranks, self.spec.training.batch_size, self.spec.training.seed)

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in read_history(Folder(str(self.folder))) if record["kind"] == kind]


def image_setup(
    folder: Path, rows: int = 50, model: dict[str, Any] = MLP, classes: list[str] = CLASSES, **changes: Any
) -> Setup:
    """Grey images of 4 x 4 pixels; `changes` are sections of the spec."""
    chance = np.random.default_rng(0)

    def examples(count: int) -> Examples:
        labels = np.arange(count) % len(classes)
        pixels = chance.integers(0, 120, (count, 16)) + 60 * labels[:, None]
        return Examples(pixels.astype(np.uint8).reshape(-1), np.arange(count + 1) * 16, labels)

    counts = np.bincount(np.arange(rows) % len(classes), minlength=len(classes)).tolist()
    images = ImageInput(4, 4, 1, [0.4], [0.2], resize=False)
    spec, preprocessor = _spec(model, {"train": {"uri": "images"}}, changes), image_classifier(images, classes, counts)
    return Setup(folder, spec, preprocessor, {"train": examples(rows), "validation": examples(23)})


def resnet_setup(folder: Path, rows: int = 50, **changes: Any) -> Setup:
    """Images of 28 x 20 pixels, and a pretrained network."""
    chance = np.random.default_rng(0)
    network = save_resnet(folder.parent / "resnet")
    counts = np.bincount(np.arange(rows) % len(CLASSES), minlength=len(CLASSES)).tolist()
    images = PretrainedImageInput.of(pretrained_processor(str(network)))

    def examples(count: int) -> Examples:
        labels = np.arange(count) % len(CLASSES)
        pixels = chance.integers(0, 120, (count, 20, 28, 3)) + 60 * labels[:, None, None, None]
        values = images.transform(pa.table({"image": image_tensor(pixels.astype(np.uint8))}))
        return Examples.from_table(pa.table({"values": values, "label": labels}))

    model = {"imageClassifier": {"pretrained": str(network), "dropout": 0.3}}
    spec, preprocessor = _spec(model, {"train": {"uri": "images"}}, changes), image_classifier(images, CLASSES, counts)
    return Setup(folder, spec, preprocessor, {"train": examples(rows), "validation": examples(23)})


def text_setup(folder: Path, rows: int = 50, model: dict[str, Any] = TEXT, **changes: Any) -> Setup:
    """Texts of 1 to 20 words."""
    chance = random.Random(0)

    def text(label: str) -> str:
        words = (label if chance.random() < 0.3 else f"word{chance.randrange(9)}" for _ in range(chance.randint(1, 20)))
        return " ".join(words)

    def table(count: int) -> pa.Table:
        labels = np.arange(count) % len(CLASSES)
        return pa.table({"text": [text(CLASSES[label]) for label in labels], "label": labels})

    train, validation = table(rows), table(23)
    counts = np.bincount(train["label"].to_numpy(), minlength=len(CLASSES)).tolist()
    tokenizer, config = train_wordpiece(train["text"].to_pylist(), 100, 16)
    texts = TextInput(["text"], 16, 10.0, tokenizer, config, Cleaning())
    preprocessor = text_classifier(texts, CLASSES, counts)
    spec = _spec(model, {"train": {"uri": "texts.csv"}, "text": ["text"], "label": "label"}, changes)

    def examples(rows: pa.Table) -> Examples:
        return Examples.from_table(pa.table({"values": texts.transform(rows), "label": rows["label"]}))

    return Setup(folder, spec, preprocessor, {"train": examples(train), "validation": examples(validation)})


def _spec(model: dict[str, Any], dataset: dict[str, Any], changes: dict[str, Any]) -> TrainJobSpec:
    training = {"epochs": 2, "batchSize": 12, "precision": "float32", "optimizer": {"sgd": {"learningRate": 0.1}}}
    training |= changes.pop("training", {})
    return TrainJobSpec.model_validate({"model": model, "dataset": dataset, "training": training} | changes)


class ScriptedScorer(Scorer):
    """Gives the scores of a script, one after the other."""

    def __init__(self, classes: list[str], script: list[tuple[float, int]]) -> None:
        self._classes, self._script = classes, iter(script)

    def score(self, module: torch.nn.Module, name: str, predicted: Predicted | None = None) -> ClassificationScores:
        loss, right = next(self._script)
        confusion = np.diag([right, 0, 0])
        confusion[0, 1] = 10 - right
        return classification_scores(Confusion.of_matrix(confusion), 10 * loss, self._classes)


class PowerCut(Exception):
    """Ends training on all ranks at once, without a chance to save anything."""


Draw = tuple[float, float, float]
"""A random number of Python, of numpy and of torch."""


@dataclass
class WatchedBatches:
    """A rank's training batches, until `stop_after` were given; before each it sleeps `seconds` and draws."""

    batches: InMemoryBatches
    stop_after: int | None
    seconds: float
    drawn: list[Draw] = field(default_factory=list)

    def epoch(self, epoch: int) -> Iterator[Batch]:
        for batch in self.batches.epoch(epoch):
            if len(self.drawn) == self.stop_after:
                raise PowerCut
            time.sleep(self.seconds)
            self.drawn.append((random.random(), np.random.random(), torch.rand(()).item()))
            yield batch


@dataclass
class Trained:
    """The results of one rank after `train`."""

    resumed: str | None
    weights: dict[str, np.ndarray]
    """Parameters and buffers."""
    state: TrainingState
    learning_rate: float
    """The learning rate after the last step."""
    records: list[dict[str, Any]]
    snapshots: list[TrainingStatus]
    """The reports of rank 0."""
    seconds: float
    """Wall time of `fit`."""
    drawn: list[Draw]


def build_trainer(
    setup: Setup, reporter: Reporter | None = None, is_told_to_stop: Callable[[], bool] = lambda: False
) -> Trainer:
    """A new trainer of this rank."""
    spec, preprocessor = setup.spec, setup.preprocessor
    shard = setup.shard(rank(), world_size())
    module = build_for(spec.model, spec.training, preprocessor, CPU)
    model = to_device_or_shard(module, spec.training, CPU, on_ray=False)
    rows = rows_in_memory(setup.examples, preprocessor, shard)
    inputs = TrainerInputs(
        spec=spec,
        preprocessor=preprocessor,
        module=module,
        model=model,
        device=CPU,
        data=replace(rows, micro_batches=shard.micro_batches(spec.workers.count)),
        run=Folder(str(setup.folder)),
        scratch=Path(mkdtemp(dir=setup.folder.parent)),
        reporter=reporter or Reporter(None, setup.store, spec.training.epochs),
        is_told_to_stop=is_told_to_stop,
    )
    trainer = Trainer(inputs)
    if setup.script is not None:
        trainer.scorer = ScriptedScorer(preprocessor.target.classes, setup.script)
    seed(spec.training.seed + 1 + rank())  # last: a library may draw when it is imported
    return trainer


class Recorder(Sender):
    """Keeps what rank 0 reports instead of sending some of it."""

    def __init__(self) -> None:
        self.snapshots: list[TrainingStatus] = []

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        self.snapshots.append(status)


def train(
    setup: Setup, stop_after: int | None = None, seconds: float = 0.0, told: tuple[int, int] | None = None
) -> Trained:
    """Trains, or continues from the latest checkpoint, until the power is cut after `stop_after` batches. `told`: a
    rank, and the number of batches after which it is told to stop."""

    def is_told_to_stop() -> bool:
        return told is not None and told[0] == rank() and len(batches.drawn) >= told[1]

    recorder = Recorder()
    reporter = Reporter(recorder if rank() == 0 else None, setup.store, setup.spec.training.epochs)
    trainer = build_trainer(setup, reporter, is_told_to_stop)
    name = _resume(trainer)
    assert isinstance(trainer.batches, InMemoryBatches)
    trainer.batches = batches = WatchedBatches(trainer.batches, stop_after, seconds)
    reporter.begin(trainer.state.epoch, trainer.state.step, trainer.plan.steps, world_size(), name, [])
    since = time.perf_counter()
    with suppress(PowerCut):
        trainer.train()
    trainer.start_stage("end")
    return Trained(
        resumed=name,
        weights={name: _whole(value).numpy() for name, value in trainer.module.state_dict().items()},
        state=trainer.state,
        learning_rate=trainer.optimizer.param_groups[0]["lr"],
        records=trainer.history.records,
        snapshots=recorder.snapshots,
        seconds=time.perf_counter() - since,
        drawn=batches.drawn,
    )


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _resume(trainer: Trainer) -> str | None:
    name = trainer.store.latest()
    if name is not None:
        trainer.resume(name)
        trainer.history.resume(trainer.state.step)
    return name


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    timed = ("time", "samples_per_second", "tokens_per_second")
    return [{name: value for name, value in record.items() if name not in timed} for record in records]
