"""Writes the data of sections.yaml: where does a docstring list its parameters, results, exceptions and examples?

The rows are docstrings of trainjob's own dependencies, as in make_docstrings.py, with the sections of NumPy's and
Google's styles as spans. The functions of a source file are all in train.jsonl or all in test.jsonl. The same seed and
package versions give the same files.
"""

import argparse
import ast
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from make_docstrings import NAMES, TEST_FRACTION, definitions, is_new, source_files

FILES = 150
"""Source files of each package."""
LONGEST = 3000
"""Characters of a docstring."""
TYPES = {
    "parameters": "parameters",
    "args": "parameters",
    "arguments": "parameters",
    "returns": "returns",
    "yields": "returns",
    "raises": "raises",
    "examples": "examples",
    "example": "examples",
    "notes": "notes",
    "note": "notes",
    "see also": "seeAlso",
}
HEADING = re.compile(r"^(?P<name>[A-Z][A-Za-z ]+)(?::[ \t]*$|\n-{3,}[ \t]*$)", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "sections")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    collected = collect(list(NAMES), random.Random(arguments.seed))
    for name, rows in zip(("train.jsonl", "test.jsonl"), collected, strict=True):
        (arguments.output / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        print(f"{arguments.output / name}: {len(rows):,} docstrings")


def collect(packages: list[str], rng: random.Random) -> tuple[list[Any], list[Any]]:
    """Training and test rows, each in random order."""
    train: list[Any] = []
    test: list[Any] = []
    seen: set[str] = set()
    for package in packages:
        for file in source_files(package, rng)[:FILES]:
            (test if rng.random() < TEST_FRACTION else train).extend(rows_of(file, seen))
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def rows_of(file: Path, seen: set[str]) -> Iterator[dict[str, Any]]:
    for node in definitions(ast.parse(file.read_bytes())):
        text = (ast.get_docstring(node) or "").strip()
        spans = sections(text)
        if spans and len(text) <= LONGEST and is_new(text, seen):
            yield {"docstring": text, "sections": spans}


def sections(text: str) -> list[list[Any]]:
    """Start, end and type of each section of a docstring, with its heading."""
    found = list(HEADING.finditer(text))
    ends = [*(heading.start() for heading in found[1:]), len(text)][: len(found)]
    spans: list[list[Any]] = []
    for heading, end in zip(found, ends, strict=True):
        kind = TYPES.get(heading["name"].strip().lower())
        if kind is not None:
            spans.append([heading.start(), len(text[:end].rstrip()), kind])
    return spans


if __name__ == "__main__":
    main()
