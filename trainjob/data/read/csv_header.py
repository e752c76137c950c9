"""Recognizes CSV files whose first line does not name the columns: it is a row, or a title above the names."""

import csv
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from trainjob.errors import listed
from trainjob.formatting import cut

SAMPLED_ROWS = 20
MAX_NAME_CHARACTERS, SHOWN_CHARACTERS = 200, 30
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YEARS = range(1900, 2101)


def doubt_about_header(reader: Iterable[list[str]]) -> str | None:
    """A message if the first line of a file looks like a row; None if it looks like the names of columns. `reader`
    yields the cells of each line."""
    lines = _first(reader)
    if not lines or not _is_row(*lines):
        return None
    cells = [cut(cell, SHOWN_CHARACTERS) for cell in lines[0]]
    return (
        f"the first line looks like a row, not like the names of the columns ({listed(cells)}): if it is a row, add a "
        "line with names above it"
    )


def title_above_header(reader: Iterable[list[str]]) -> str | None:
    """A message if the first lines of a file look like a title in a spreadsheet: one value each, above lines that all
    have the same number of cells; None if they do not."""
    lines = [line for line in _first(reader) if any(map(str.strip, line))]
    header = next((number for number, line in enumerate(lines) if _values(line) > 1), 0)
    widths = {len(line) for line in lines[header:]}
    if not header or len(widths) > 1 or len(lines) < header + 3:
        return None
    is_named = len(lines[0]) == 2  # by one name, beside a column without one
    if is_named or not lines[0][0].strip():
        return None
    title = lines[0][0][:SHOWN_CHARACTERS]
    return (
        f"the first line looks like a title ({title}): if it is one, delete all lines above the one with the names of "
        f"the columns ({listed(lines[header])})"
    )


def _first(reader: Iterable[list[str]]) -> list[list[str]]:
    """The first lines that are not blank."""
    lines = list[list[str]]()
    with suppress(csv.Error):  # which reading the rows tells
        for line in reader:
            if len(lines) > SAMPLED_ROWS:
                break
            if line:
                lines.append(line)
    return lines


def _values(line: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in line)


def _is_row(names: Sequence[str], *rows: Sequence[str]) -> bool:
    """Whether one of the names is a number above numbers, occurs in its column, or is far too long."""
    columns = [[row[index].strip() for row in rows if index < len(row)] for index in range(len(names))]
    named = [(name.strip(), cells) for name, cells in zip(names, columns, strict=True) if name.strip() and cells]
    if any(len(name) > MAX_NAME_CHARACTERS for name, _ in named):
        return True
    numbers = [(name, cells) for name, cells in named if _NUMBER.fullmatch(name)]
    if _are_names(names, [float(name) for name, _ in numbers]):
        numbers, named = [], [each for each in named if each not in numbers]
    return any(all(map(_NUMBER.fullmatch, cells)) for _, cells in numbers) or any(
        name in cells for name, cells in named
    )


def _are_names(names: Sequence[str], numbers: Sequence[float]) -> bool:
    """Whether the numbers among the names of columns are indices of the columns, as pandas writes them, or years."""
    if not all(number.is_integer() for number in numbers):
        return False
    is_counted = all(number == numbers[0] + index for index, number in enumerate(numbers))
    is_enough = len(numbers) > 1 or "" in names or list(names) == ["0"]
    return (is_counted and is_enough) or (len(numbers) > 1 and all(number in _YEARS for number in numbers))
