"""Writes the data of diabetes.yaml: scikit-learn's 442 patients, with ten measurements and the progression of
the disease.

The test set is a random quarter of the patients.
"""

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "diabetes")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    diabetes: Any = load_diabetes(scaled=False)
    columns = dict(zip(diabetes.feature_names, diabetes.data.T, strict=True))
    table = pa.table(columns | {"progression": diabetes.target})
    parts = train_test_split(range(len(table)), test_size=0.25, random_state=arguments.seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train", "test"), parts, strict=True):
        csv.write_csv(table.take(sorted(rows)), arguments.output / f"{name}.csv")
        print(f"{arguments.output}: {len(rows):,} {name} patients")


if __name__ == "__main__":
    main()
