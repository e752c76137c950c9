"""The data of the README's first example, which takes a while to collect."""

import csv
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).parents[2] / "examples" / "make_docstrings.py"

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def docstrings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """Training and test rows."""
    folder = tmp_path_factory.mktemp("docstrings")
    subprocess.run([sys.executable, SCRIPT, "--output", folder], check=True, stdout=subprocess.DEVNULL)
    return read(folder / "train.csv"), read(folder / "test.csv")


def read(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_docstrings_are_thousands_of_distinct_rows_in_balanced_classes(docstrings: tuple[Rows, Rows]) -> None:
    for part, smallest in zip(docstrings, (1000, 200), strict=True):
        counts = Counter(row["package"] for row in part)
        assert len(counts) == 8
        assert min(counts.values()) > smallest
        assert max(counts.values()) < 2.5 * min(counts.values())
    texts = [row["docstring"] for part in docstrings for row in part]
    assert len(set(texts)) == len(texts)
    assert all(60 <= len(text) <= 400 for text in texts)


def test_docstrings_do_not_name_their_package(docstrings: tuple[Rows, Rows]) -> None:
    names = re.compile(r"\b(numpy|np|scipy|pandas|sklearn|torch|pytorch|matplotlib|plt|ray|transformers)\b", re.I)
    for row in docstrings[1]:
        assert not names.search(row["docstring"].replace("_", " ")), row
