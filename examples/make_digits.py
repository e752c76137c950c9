"""Writes the data of digits-cnn.yaml and digits-mlp.yaml: scikit-learn's 1,797 handwritten digits in MNIST's format.

The images have 8 x 8 grayscale pixels. The test set is a random fifth of each digit's images.
"""

import argparse
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

UNSIGNED_BYTE = 8
"""MNIST's code for the type of its items."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "digits")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    digits: Any = load_digits()
    pixels = np.round(digits.images * (255 / 16)).astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    parts = train_test_split(range(len(labels)), test_size=0.2, stratify=labels, random_state=arguments.seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, indices in zip(("train", "test"), parts, strict=True):
        write_idx(arguments.output / f"{name}-images-idx3-ubyte.gz", pixels[indices])
        write_idx(arguments.output / f"{name}-labels-idx1-ubyte.gz", labels[indices])
        print(f"{arguments.output}: {len(indices):,} {name} images")


def write_idx(path: Path, array: np.ndarray) -> None:
    """Writes uint8 values of any shape in MNIST's format: magic number, size of each dimension, values."""
    header = bytes([0, 0, UNSIGNED_BYTE, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + array.tobytes(), mtime=0))


if __name__ == "__main__":
    main()
