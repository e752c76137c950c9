"""Do the defaults learn? Compares a pretrained text classifier with default settings with a small grid of learning
rates and schedules, on the same splits of a table.

    python benchmarks/defaults.py TABLE.csv --pretrained FOLDER --text title,description --label tag

Prints the macro F1 on held-out rows, one line per setting: the mean over the splits, and each split.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

TEST_SHARE = 0.25
RATES = (5.0e-5, 1.0e-4, 3.0e-4)
FROZEN_RATES = (3.0e-2, 1.0e-1, 3.0e-1)
SCHEDULES: dict[str, dict[str, Any]] = {"constant": {"constant": {}}, "linear": {"linear": {}}}


def main() -> None:
    arguments = _arguments()
    with arguments.table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rates = FROZEN_RATES if arguments.frozen else RATES
    grid: dict[str, dict[str, Any]] = {"defaults": {}} | {
        f"{rate:.0e} {name}": {"optimizer": {"adamW": {"learningRate": rate}}, "scheduler": schedule}
        for rate in rates
        for name, schedule in SCHEDULES.items()
    }
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="trainjob-defaults-") as folder:
        for seed in range(arguments.splits):
            split = _write_split(Path(folder) / f"split-{seed}", rows, seed)
            for name, training in grid.items():
                found.setdefault(name, []).append(_score(arguments, split, name, training))
                print(f"split {seed}  {name:<16} {found[name][-1]:.3f}", file=sys.stderr, flush=True)
    for name, scores in sorted(found.items(), key=lambda item: -mean(item[1])):
        print(f"{name:<16} {mean(scores):.3f}  ({', '.join(f'{score:.3f}' for score in scores)})")
    best = max(mean(scores) for name, scores in found.items() if name != "defaults")
    print(f"defaults - best of the grid: {mean(found['defaults']) - best:+.3f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--pretrained", type=Path, required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--label", required=True)
    parser.add_argument("--frozen", action="store_true", help="train the head alone")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--splits", type=int, default=3)
    return parser.parse_args()


def _write_split(folder: Path, rows: list[dict[str, str]], seed: int) -> Path:
    """Two CSV files with the same columns; a random quarter of the rows is held out."""
    folder.mkdir()
    shuffled = random.Random(seed).sample(rows, len(rows))
    count = round(TEST_SHARE * len(rows))
    for name, part in (("test", shuffled[:count]), ("train", shuffled[count:])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(part)
    return folder


def _score(arguments: argparse.Namespace, split: Path, name: str, training: dict[str, Any]) -> float:
    run = name.replace(" ", "-").replace("e-0", "e-")
    spec = {
        "model": {
            "textClassifier": {"pretrained": str(arguments.pretrained.absolute()), "freezeEncoder": arguments.frozen}
        },
        "dataset": {
            "train": {"uri": str(split / "train.csv")},
            "test": {"uri": str(split / "test.csv")},
            "text": arguments.text.split(","),
            "label": arguments.label,
            "loader": "dataLoader",
        },
        "training": {"epochs": arguments.epochs, **training},
        "checkpoints": {"metric": "validation_f1"},
        "storage": {"uri": str(split / "runs")},
        "baselines": {},
    }
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": run}, "spec": spec}
    file = split / f"{run}.yaml"
    file.write_text(yaml.safe_dump(document))
    subprocess.run([sys.executable, "-m", "trainjob", "run", file], check=True, stdout=subprocess.DEVNULL)
    return json.loads((split / "runs" / run / "evaluation.json").read_text())["test"]["macro"]["f1"]


if __name__ == "__main__":
    main()
