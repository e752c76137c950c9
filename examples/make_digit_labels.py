"""Writes the data of digit-labels.yaml: scikit-learn's handwritten digits, each with any of three labels.

An image is labeled `even`, `above_4` and `loop` (0, 6, 8 and 9), which has a column of 0 and 1 each. A 1 or a 3 has no
label. The test set is a random fifth of each digit's images.
"""

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

LOOPS = (0, 6, 8, 9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "digit-labels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    digits: Any = load_digits()
    pixels, target = np.round(digits.images * (255 / 16)).astype(np.uint8), digits.target
    columns = {"even": target % 2 == 0, "above_4": target > 4, "loop": np.isin(target, LOOPS)}
    table = pa.table(
        {
            "image": [png(each) for each in pixels],
            **{name: pa.array(each.astype(np.int8)) for name, each in columns.items()},
        }
    )
    parts = train_test_split(range(len(target)), test_size=0.2, stratify=target, random_state=arguments.seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, indices in zip(("train", "test"), parts, strict=True):
        parquet.write_table(table.take(indices), arguments.output / f"{name}.parquet")
        print(f"{arguments.output}: {len(indices):,} {name} images")


def png(pixels: np.ndarray) -> bytes:
    """The content of a PNG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


if __name__ == "__main__":
    main()
