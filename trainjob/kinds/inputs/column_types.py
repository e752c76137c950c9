"""Finds the types of a table's columns, in one pass over the training rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trainjob.api.dataset import ColumnType
from trainjob.data.read.chunking import Mapper, group_parts
from trainjob.data.read.counted_reading import counted, read_part
from trainjob.data.read.rows import SourcePart, as_text, leave_out
from trainjob.errors import DataError
from trainjob.kinds.inputs.cells import as_categories, as_days, as_flags, as_numbers, trimmed

pc: Any = pyarrow.compute  # whose functions type checkers do not know

MOST_WORDS = 10_000
"""Different values of a column that are counted."""
FEW_WORDS = 20
SHARE = 0.9
"""A column is of numbers, dates or flags where at least this share of its cells is; the others are errors."""
_CODE, _WHOLE = r"^[+-]?0\d", r"^[+-]?\d+$"
EXACT = 2**53
"""From here on, different whole numbers are the same float64."""
_LOOKS_LIKE_NUMBER = r"^[^\pL]{0,3}\d[\d.,' ]*[.,]\d+[^\pL]{0,3}$|^[+-]?\p{Sc} ?\d+$|^[+-]?\d+ ?[\p{Sc}%]$"


@dataclass
class Found:
    """The types found in the cells of a column. Picklable."""

    cells: int = 0
    """Cells that are not empty."""
    numbers: int = 0
    others: int = 0
    """Cells that hold neither numbers nor words for a missing value."""
    dates: int = 0
    flags: int = 0
    like_numbers: int = 0
    """Cells such as 1.234,50, $ 12.50, 3 € and 31.12.2026, which cannot be read."""
    has_codes: bool = False
    """Whether a number begins with a zero, as postal codes do, or is whole and too large to be told from others."""
    words: set[str] | None = field(default_factory=set[str])
    """The different values; None where they are more than MOST_WORDS."""
    ends: tuple[float, float] | None = None
    """First and last cell of a column that counts upwards in steps of one; NaN of one that does not."""

    def add(self, cells: pa.Array) -> None:
        """Counts further cells, without blanks around them."""
        names = as_categories(cells)
        numbers, is_other = as_numbers(cells)
        found = Found(len(cells) - names.null_count, int(np.sum(~np.isnan(numbers))), int(np.sum(is_other)))
        found.has_codes = bool(pc.any(pc.match_substring_regex(cells, _CODE)).as_py())
        if (is_large := np.isfinite(numbers) & (np.abs(numbers) >= EXACT)).any():
            large = cells.filter(pa.array(is_large))
            found.has_codes |= bool(pc.any(pc.match_substring_regex(large, _WHOLE)).as_py())
        if found.others:
            found.dates = int(np.sum(~np.isnan(as_days(cells)[0])))
            found.flags = int(np.sum(~np.isnan(as_flags(cells)[0]) & is_other))
            looks_like_number = pc.match_substring_regex(cells, _LOOKS_LIKE_NUMBER).to_numpy(zero_copy_only=False)
            found.like_numbers = int(np.sum(looks_like_number.astype(bool) & is_other))
        if len(cells):
            counts = bool((np.diff(numbers) == 1).all())
            found.ends = (float(numbers[0]), float(numbers[-1])) if counts else (np.nan, np.nan)
        if self.words is not None:
            found.words = set(pc.unique(names.drop_null()).to_pylist())
        self.merge(found)

    def merge(self, later: "Found") -> None:
        """Adds the types found in the cells that follow."""
        self.cells += later.cells
        self.numbers += later.numbers
        self.others += later.others
        self.dates += later.dates
        self.flags += later.flags
        self.like_numbers += later.like_numbers
        self.has_codes |= later.has_codes
        if self.words is not None:
            words = None if later.words is None else self.words | later.words
            self.words = words if words is not None and len(words) <= MOST_WORDS else None
        if self.ends is None or later.ends is None:
            self.ends = self.ends or later.ends
        else:
            follows = self.ends[1] + 1 == later.ends[0]
            self.ends = (self.ends[0], later.ends[1]) if follows else (np.nan, np.nan)

    def type(self, name: str) -> tuple[ColumnType, str]:
        """The column's type and, where it is left out, why. Raises DataError where that must be asked."""
        known = self.numbers + self.others
        if not known:
            return "ignore", "empty"
        if self.words is not None and len(self.words) == 1 and self.cells == known:
            return "ignore", "the same in every row"
        if self.flags >= SHARE * known:
            return "flag", ""
        if self.numbers >= SHARE * known and not self.has_codes:
            is_count = self.ends is not None and self.ends[1] - self.ends[0] + 1 == self.cells
            return ("ignore", "numbers the rows") if is_count and self.cells > FEW_WORDS else ("number", "")
        if self.dates >= SHARE * known:
            return "date", ""
        if self.numbers + self.like_numbers >= SHARE * known and not self.has_codes:
            raise DataError(
                f'the column "{name}" holds numbers in a spelling that is not read, such as 1,234.50 or 12,5 or $3, '
                "or dates such as 31.12.2026: write them as 1234.50 and 2026-12-31, or set "
                f"dataset.columns to {{{name}: category}} or {{{name}: ignore}}"
            )
        if self.words is None or len(self.words) > max(FEW_WORDS, known / 2):
            return "ignore", "identifiers or texts: most rows have a value of their own"
        return "category", ""


def find_types(names: Sequence[str], parts: Sequence[SourcePart], mapped: Mapper) -> dict[str, Found]:
    """The types found in each column, in all readable rows."""
    found = {name: Found() for name in names}
    tasks = group_parts(parts)
    for some in counted(mapped(partial(_find, names=list(names)), tasks), tasks):
        for name, each in some.items():
            found[name].merge(each)
    return found


def _find(parts: list[SourcePart], names: list[str]) -> dict[str, Found]:
    found = {name: Found() for name in names}
    for part in parts:
        for rows in read_part(part, names, leave_out):
            for name, each in found.items():
                each.add(trimmed(as_text(rows.table[name], name, rows.where)))
    return found
