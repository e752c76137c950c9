"""MNIST's IDX files, from the pixels to a trained model."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from training_runs import Run

NewRun = Callable[..., Run]

LOCAL = {"dataset.loader": "dataLoader", "training.epochs": 3}


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
