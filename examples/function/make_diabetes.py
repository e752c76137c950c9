"""Writes the data of trainjob.yaml: scikit-learn's diabetes study (Efron et al., 2004), as one CSV file.

Ten standardized measurements of each of 442 patients, and the progression of the disease after a year.
"""

import argparse
from pathlib import Path
from typing import Any

from sklearn.datasets import load_diabetes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "data" / "diabetes.csv")
    path = parser.parse_args().output
    path.parent.mkdir(parents=True, exist_ok=True)
    study: Any = load_diabetes(as_frame=True)
    study.frame.rename(columns={"target": "progression"}).to_csv(path, index=False)
    print(f"{path}: {len(study.frame)} patients")


if __name__ == "__main__":
    main()
