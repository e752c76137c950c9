"""MNIST's IDX files, from the pixels to a trained model."""

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ranks import run_on
from trainjob.api import TrainJobSpec
from trainjob.data import fit, prepare_examples
from trainjob.evaluation import ClassificationScores
from trainjob.progress.channel import Address
from trainjob.runs.files import ATTEMPTS
from trainjob.storage import Folder
from trainjob.worker.job import WorkerJob
from trainjob.worker.outcome import Outcome
from trainjob.worker.train import train_and_score
from unit.data.data_specs import write_mnist


def test_idx_files_and_an_mlp(tmp_path: Path):
    """The training files gzipped."""
    pixels, labels = load_digits(return_X_y=True)
    images, digits = (np.asarray(pixels).reshape(-1, 8, 8) * 15).astype(np.uint8), np.asarray(labels)
    train = write_mnist(tmp_path / "train", images[:1400], digits[:1400], zipped=True)
    test = write_mnist(tmp_path / "test", images[1400:], digits[1400:])
    spec = TrainJobSpec.model_validate(
        {
            "model": {"imageClassifier": {"mlp": {"hidden": [64]}}},
            "dataset": {"train": {"uri": str(train)}, "test": {"uri": str(test)}},
            "training": {"epochs": 3, "batchSize": 16, "optimizer": {"adam": {"learningRate": 0.01}}},
        }
    )
    fitted, run = fit(spec), Folder(str(tmp_path / "run"))
    run.write(ATTEMPTS, b"{}")  # a run has begun here
    examples = partial(dict, prepare_examples(spec, fitted))
    task = WorkerJob(spec, run, 1, fitted, Address("127.0.0.1", 1, b""), threads=1, examples=examples)
    [outcome] = run_on(1, train_and_score, task)
    assert isinstance(outcome, Outcome)
    assert isinstance(outcome.test, ClassificationScores)
    assert outcome.test.rows == 397
    assert outcome.test.accuracy > 0.85
