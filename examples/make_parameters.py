"""Writes the data of parameters.yaml: how many parameters does the function have that a docstring describes?

The rows are beginnings of docstrings of trainjob's own dependencies, as in make_docstrings.py, with the number of
parameters that the function takes. The functions of a source file are all in train.csv or all in test.csv. The same
seed and package versions give the same files.
"""

import argparse
import ast
import csv
import random
from collections.abc import Iterator
from pathlib import Path

from make_docstrings import LONGEST, NAMES, SHORTEST, TEST_FRACTION, definitions, is_new, source_files

FILES = 150
"""Source files of each package."""
IMPLICIT = {"self", "cls"}

Row = tuple[str, int]
"""Docstring and number of parameters."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "parameters")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train.csv", "test.csv"), collect(list(NAMES), random.Random(arguments.seed)), strict=True):
        with (arguments.output / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("docstring", "parameters"), *rows])
        print(f"{arguments.output / name}: {len(rows):,} docstrings")


def collect(packages: list[str], rng: random.Random) -> tuple[list[Row], list[Row]]:
    """Training and test rows, each in random order."""
    train: list[Row] = []
    test: list[Row] = []
    seen: set[str] = set()
    for package in packages:
        for file in source_files(package, rng)[:FILES]:
            (test if rng.random() < TEST_FRACTION else train).extend(functions(file, seen))
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def functions(file: Path, seen: set[str]) -> Iterator[Row]:
    for node in definitions(ast.parse(file.read_bytes())):
        text = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef) or len(text) < SHORTEST or not is_new(text, seen):
            continue
        taken = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        yield text[:LONGEST], len([name for name in taken if name not in IMPLICIT])


if __name__ == "__main__":
    main()
