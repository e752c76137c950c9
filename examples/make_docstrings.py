"""Writes the data of docstrings.yaml: which Python package does a docstring come from?

The rows are the beginnings of docstrings of trainjob's own dependencies, read from their installed source files
(nothing is imported), so the example needs no download. Two rules keep the task fair:

- Names that reveal the answer, such as "numpy" and its alias "np", are replaced by "_" in every docstring.
- The docstrings of a source file are all in train.csv or all in test.csv, because those of one file are often
  variations of each other.

The same seed and package versions give the same files.
"""

import argparse
import ast
import csv
import random
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

NAMES = {
    "matplotlib": ["matplotlib", "pyplot", "plt", "mpl"],
    "numpy": ["numpy", "np"],
    "pandas": ["pandas", "pd"],
    "ray": ["ray"],
    "scipy": ["scipy"],
    "sklearn": ["sklearn", "scikit-learn", "scikit_learn", "scikit"],
    "torch": ["torch", "pytorch"],
    "transformers": ["transformers", "huggingface", "hugging face"],
}
"""Packages, and their names in docstrings."""

GIVEAWAY = re.compile(rf"(?<![a-z])({'|'.join(name for names in NAMES.values() for name in names)})(?![a-z])", re.I)
SKIPPED_FOLDERS = {"tests", "test", "testing", "externals", "_vendor", "vendored_packages", "thirdparty_files"}
SHORTEST, LONGEST = 60, 400
"""Minimum and maximum characters: shorter docstrings are skipped, longer ones truncated."""
MAX_ROWS = 2000
"""Maximum docstrings per package, so that no class dominates."""
TEST_FRACTION = 0.2

Row = tuple[str, str]
"""Docstring and package."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "docstrings")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    train, test = collect(NAMES, random.Random(arguments.seed))
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train.csv", train), ("test.csv", test)):
        with (arguments.output / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("docstring", "package"), *rows])
        print(f"{arguments.output / name}: {len(rows):,} docstrings")


def collect(packages: Iterable[str], rng: random.Random) -> tuple[list[Row], list[Row]]:
    """Training and test rows, each in random order."""
    train: list[Row] = []
    test: list[Row] = []
    seen: set[str] = set()
    for package in packages:
        left = MAX_ROWS
        for file in source_files(package, rng):
            fresh = [(text, package) for text in docstrings(file) if is_new(text, seen)][:left]
            (test if rng.random() < TEST_FRACTION else train).extend(fresh)
            left -= len(fresh)
            if not left:
                break
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def source_files(package: str, rng: random.Random) -> list[Path]:
    """The package's own Python files in random order, without tests and vendored code."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed; install trainjob's dependencies first")
    root = Path(spec.submodule_search_locations[0])
    files = [file for file in sorted(root.rglob("*.py")) if SKIPPED_FOLDERS.isdisjoint(file.relative_to(root).parts)]
    rng.shuffle(files)
    return files


def docstrings(file: Path) -> Iterator[str]:
    """The docstrings of a file's functions, classes and methods, without giveaways."""
    for node in definitions(ast.parse(file.read_bytes())):
        text = GIVEAWAY.sub("_", ast.get_docstring(node) or "")
        if len(text) >= SHORTEST:
            yield text[:LONGEST]


def definitions(parent: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node)


def is_new(text: str, seen: set[str]) -> bool:
    """Whether this is the first docstring that starts with these letters; remembers it."""
    beginning = re.sub(r"[^a-z]", "", text.lower())[:SHORTEST]
    if beginning in seen:
        return False
    seen.add(beginning)
    return True


if __name__ == "__main__":
    main()
