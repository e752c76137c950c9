"""Trains a changed model for a short time, with the run's own loop and training rows."""

from collections.abc import Iterator
from pathlib import Path

import torch

from trainjob.api import Scheduler, TrainJobSpec, WarmUp
from trainjob.data import Fitted, prepare_examples
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import InMemoryBatches, Shard, memory_windows, scoring_batches
from trainjob.kinds.targets.class_losses import SampleLosses, sample_losses
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoint_tensors import CheckpointTensors
from trainjob.runs.checkpoints import CheckpointStore
from trainjob.runs.history import History
from trainjob.storage import Folder
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.random_states import seed
from trainjob.worker.sharded_tensors import load_weights

EPOCHS = 2
CPU = torch.device("cpu")


class TrainingRows:
    """The training and validation rows of a run, in memory, for one process."""

    def __init__(self, spec: TrainJobSpec, fitted: Fitted) -> None:
        """Raises DataError where the rows can no longer be used, StorageError where they cannot be reached."""
        self.preprocessor, self.examples = fitted.preprocessor, prepare_examples(spec, fitted)
        self.losses: SampleLosses = sample_losses(spec.model, fitted.preprocessor.target)
        self.shard = Shard(0, 1, spec.training.batch_size, spec.training.seed)

    def training(self) -> InMemoryBatches:
        return InMemoryBatches(self.examples["train"], self.preprocessor, self.shard)

    def scored(self, name: str) -> Iterator[Batch]:
        return scoring_batches(memory_windows(self.examples[name], self.shard.window), self.preprocessor, self.shard)


def fine_tune(classifier: TextModule, spec: TrainJobSpec, rows: TrainingRows, scratch: Path) -> None:
    """Trains `classifier` for EPOCHS epochs with the run's settings and a learning rate that rises and falls, and
    leaves it with the weights of the better epoch. `scratch` is an empty folder.

    Raises UserError where training diverges.
    """
    training = spec.training.model_copy(
        update={
            "epochs": EPOCHS,
            "early_stopping": None,
            "scheduler": Scheduler(linear=WarmUp()),
            "distillation": None,
        }
    )
    checkpoints = spec.checkpoints.model_copy(update={"every_steps": None})
    short = spec.model_copy(update={"training": training, "checkpoints": checkpoints})
    folder = Folder(str(scratch / "run"))
    store = CheckpointStore(folder, checkpoints)
    seed(training.seed)
    inputs = TrainerInputs(
        spec=short,
        preprocessor=rows.preprocessor,
        module=classifier,
        model=classifier,
        device=CPU,
        batches=rows.training(),
        batches_per_epoch=rows.shard.batches(len(rows.examples["train"])),
        sets=rows.scored,
        store=store,
        reporter=Reporter(None, store, EPOCHS),
        history=History(folder, scratch, check=lambda _: None),  # a scratch folder, not a run's
    )
    Trainer(inputs).train()
    best, manifest = store.best()
    load_weights(classifier, CheckpointTensors(store / best, manifest.files))
    classifier.eval()
