"""Writes the data of wine.yaml: scikit-learn's 178 wines, with 13 measurements and the cultivar of each.

The test set is a random quarter of each cultivar's wines.
"""

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "wine")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wine: Any = load_wine()
    columns = dict(zip(wine.feature_names, wine.data.T, strict=True))
    table = pa.table(columns | {"cultivar": wine.target_names[wine.target]})
    parts = train_test_split(range(len(table)), test_size=0.25, stratify=wine.target, random_state=arguments.seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train", "test"), parts, strict=True):
        csv.write_csv(table.take(sorted(rows)), arguments.output / f"{name}.csv")
        print(f"{arguments.output}: {len(rows):,} {name} wines")


if __name__ == "__main__":
    main()
