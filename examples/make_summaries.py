"""Writes the data of summaries.yaml: from a Python function's signature to the first sentence of its docstring.

The rows are functions and methods of trainjob's own dependencies, read from their installed source files (nothing is
imported), so the example needs no download. Those of one source file are all in train.csv or all in test.csv, and a
sentence that many functions share is used once.

The same seed and package versions give the same files.
"""

import argparse
import ast
import csv
import random
import re
from collections.abc import Iterator
from pathlib import Path

from make_docstrings import NAMES, TEST_FRACTION, definitions, source_files

SHORTEST, LONGEST = 15, 200
"""Minimum and maximum characters of signature and sentence; others are skipped."""
MAX_ROWS = 3000
"""Maximum functions per package."""

Row = tuple[str, str]
"""Prompt and completion: a signature with a line break, and a sentence."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "summaries")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    train, test = collect(list(NAMES), random.Random(arguments.seed))
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train.csv", train), ("test.csv", test)):
        with (arguments.output / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("signature", "summary"), *rows])
        print(f"{arguments.output / name}: {len(rows):,} functions")


def collect(packages: list[str], rng: random.Random) -> tuple[list[Row], list[Row]]:
    """Training and test rows, each in random order."""
    train: list[Row] = []
    test: list[Row] = []
    seen: set[str] = set()
    for package in packages:
        left = MAX_ROWS
        for file in source_files(package, rng):
            fresh = [row for row in functions(file) if is_new(row[1], seen)][:left]
            (test if rng.random() < TEST_FRACTION else train).extend(fresh)
            left -= len(fresh)
            if not left:
                break
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def functions(file: Path) -> Iterator[Row]:
    """A file's functions and methods whose docstring starts with a unique sentence."""
    for node in definitions(ast.parse(file.read_bytes())):
        first = (ast.get_docstring(node) or "").partition("\n\n")[0]
        sentence = " ".join(first.split())
        if isinstance(node, ast.ClassDef) or not SHORTEST <= len(sentence) <= LONGEST:
            continue
        signature = f"def {node.name}({ast.unparse(node.args)}):\n"
        if len(signature) <= LONGEST:
            yield signature, sentence


def is_new(sentence: str, seen: set[str]) -> bool:
    """Whether this is the first sentence with these letters; remembers it."""
    letters = re.sub(r"[^a-z]", "", sentence.lower())
    if letters in seen:
        return False
    seen.add(letters)
    return True


if __name__ == "__main__":
    main()
