"""Prepared rows in files, which local workers map into memory that they share."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from trainjob.data import Examples


def save_arrays(examples: dict[str, Examples], folder: Path) -> None:
    for name, rows in examples.items():
        (folder / name).mkdir(parents=True)
        for array in fields(rows):
            np.save(folder / name / f"{array.name}.npy", getattr(rows, array.name))


def load_arrays(folder: Path) -> dict[str, Examples]:
    """What `save_arrays` wrote."""
    return {
        path.name: Examples(
            **{array.name: np.load(path / f"{array.name}.npy", mmap_mode="r") for array in fields(Examples)}
        )
        for path in folder.iterdir()
    }
