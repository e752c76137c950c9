"""Trains a changed model for a short time, with the run's own loop and training rows."""

from pathlib import Path

import torch

from trainjob.api import Scheduler, TrainJobSpec, WarmUp
from trainjob.data import Fitted, Preprocessor, prepare_examples
from trainjob.data.batches.loaders import Shard
from trainjob.kinds.text_classifier.network import TextModule
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import CheckpointTensors, SavedCheckpoints
from trainjob.runs.files import ATTEMPTS
from trainjob.storage import Folder
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.random_states import seed
from trainjob.worker.rank_data import RankData, rows_in_memory
from trainjob.worker.sharded_tensors import load_weights

EPOCHS = 2
CPU = torch.device("cpu")


def load_rows(spec: TrainJobSpec, fitted: Fitted) -> RankData:
    """The training and validation rows of a run, in memory, for one process.

    Raises DataError where the rows can no longer be used, StorageError where they cannot be reached."""
    shard = Shard(0, 1, spec.training.batch_size, spec.training.seed)
    return rows_in_memory(prepare_examples(spec, fitted), fitted.preprocessor, shard)


def fine_tune(
    classifier: TextModule, preprocessor: Preprocessor, spec: TrainJobSpec, rows: RankData, scratch: Path
) -> None:
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
    run = Folder(str(scratch / "run"))
    run.write(ATTEMPTS, b"{}")  # marks a run that has started
    seed(training.seed)
    inputs = TrainerInputs(
        spec=short,
        preprocessor=preprocessor,
        module=classifier,
        model=classifier,
        device=CPU,
        data=rows,
        run=run,
        scratch=scratch,
        reporter=Reporter(None, SavedCheckpoints(run, checkpoints), EPOCHS),
    )
    trainer = Trainer(inputs)
    trainer.train()
    best, manifest = trainer.store.best()
    load_weights(classifier, CheckpointTensors(trainer.store / best, manifest.files))
    classifier.eval()
