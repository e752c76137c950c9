"""Prepared rows in files, which the workers of a machine map into memory, so that they share it."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from trainjob.data import Examples


def save_arrays(examples: dict[str, Examples], folder: Path) -> None:
    for name, rows in examples.items():
        (folder / name).mkdir(parents=True)
        for array in fields(rows):
            if getattr(rows, array.name) is not None:
                np.save(folder / name / f"{array.name}.npy", getattr(rows, array.name))


def load_arrays(folder: Path) -> dict[str, Examples]:
    """Maps the rows that `save_arrays` wrote."""
    return {
        path.name: Examples(**{file.stem: np.load(file, mmap_mode="r") for file in path.iterdir()})
        for path in folder.iterdir()
    }
