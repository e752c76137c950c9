"""Finds the types of a table's columns in the training rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trainjob.api import Dataset
from trainjob.api.dataset import ColumnType
from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.data.arrays import as_numpy, text_bytes
from trainjob.data.first_pass.survey import LabelReader, Survey, T, Translation
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.rows import OnBadRow, Rows, SourcePart, leave_out
from trainjob.errors import DataError
from trainjob.kinds.inputs.cells import EXACT, Read, as_categories, as_days, as_flags, as_numbers, cells_of, read_cells
from trainjob.kinds.target import Target

pc: Any = pyarrow.compute  # whose functions type checkers do not know

MAX_WORDS = 10_000
"""The most different values of a column that are counted."""
FIRST_ROWS = 10_000
FEW_WORDS = 20
SHARE = 0.9
"""A column has the type number, date or flag if at least this fraction of its cells has it; the other cells are
errors."""
_MAX_CHARACTERS = 30
_CODE, _WHOLE = r"^[+-]?0\d+(\.\d*)?$", r"^[+-]?\d+$"
_DIGIT_NEAR_START = r"(?s)^.{0,3}\d"
_MONTHS = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_LOOKS_LIKE_NUMBER = "|".join(
    (
        r"^[^\pL]{0,3}\d[\d.,' ]*[.,]\d+[^\pL]{0,3}$",
        r"^[+-]?\p{Sc} ?\d+$",
        r"^[+-]?\d+ ?[\p{Sc}%]$",
        r"^(\d{1,2}[/.-]\d{1,2}[/.-](\d{4}|\d\d)|\d{4}[/.]\d{1,2}[/.]\d{1,2})([ T]\d.*)?$",
        rf"^\d{{1,2}}[ .-]+{_MONTHS}[ .-]+\d{{2,4}}([ T]\d.*)?$",
    )
)


class LeftOut(NamedTuple):
    """Why a column is not learned from."""

    why: str
    may_be_text: bool = False
    """Whether the column may hold texts, which a model learns from if the user sets the type `text`."""


@dataclass
class CellCounts:
    """The types found in the cells of a column. Picklable."""

    cells: int = 0
    """Cells that are not empty."""
    empty: int = 0
    numbers: int = 0
    others: int = 0
    """Cells that hold neither numbers nor words for a missing value."""
    dates: int = 0
    flags: int = 0
    like_numbers: int = 0
    """Cells such as 1.234,50, $ 12.50, 3 €, 31.12.2026 and 12/31/2026, which cannot be read."""
    like_a_number: str = ""
    """The first of them."""
    has_codes: bool = False
    """Whether a number begins with a zero, as postal codes do, or is a whole number too large for a float64."""
    words: set[str] | None = field(default_factory=set[str])
    """The different values; None where they are more than MAX_WORDS."""
    ends: tuple[float, float] | None = None
    """First and last cell of a column that counts upwards in steps of one; NaN if it does not."""

    def add(self, cells: pa.Array, read: Read) -> None:
        """Counts further cells, without blanks around them, which `as_numbers` has read."""
        numbers, is_other = read
        filled = int(np.count_nonzero(text_bytes(cells)[1]))
        found = CellCounts(filled, len(cells) - filled, int(np.sum(~np.isnan(numbers))), int(np.sum(is_other)))
        if found.others:
            found._count_values(cells)
        if self.words is not None:
            cells = pc.unique(cells)
            found.words = set(as_categories(cells).drop_null().to_pylist())
        found.has_codes = self.has_codes or _has_codes(cells, numbers)
        if len(numbers):
            with np.errstate(over="ignore", invalid="ignore"):  # of infinite and very large numbers
                counts = bool((np.diff(numbers) == 1).all())
            found.ends = (float(numbers[0]), float(numbers[-1])) if counts else (np.nan, np.nan)
        self.merge(found)

    def _count_values(self, cells: pa.Array) -> None:
        """Counts dates, flags and what looks like a number, each different cell once."""
        counted = pc.value_counts(cells)
        values, times = counted.field("values"), as_numpy(counted.field("counts"))
        is_other = as_numbers(values)[1]
        self.dates = int(np.sum(times[~np.isnan(as_days(values)[0])]))
        self.flags = int(np.sum(times[~np.isnan(as_flags(values)[0]) & is_other]))
        is_near = pc.fill_null(pc.match_substring_regex(values, _DIGIT_NEAR_START), False)
        is_near = is_near.to_numpy(zero_copy_only=False) & is_other
        if is_near.any():  # as the other pattern takes long to compile
            near = values.filter(pa.array(is_near))
            is_like = pc.match_substring_regex(near, _LOOKS_LIKE_NUMBER)
            self.like_numbers = int(np.sum(times[is_near][is_like.to_numpy(zero_copy_only=False)]))
            self.like_a_number = next(iter(near.filter(is_like).to_pylist()), "")

    def merge(self, later: "CellCounts") -> None:
        """Adds the types found in the cells that follow."""
        self.cells += later.cells
        self.empty += later.empty
        self.numbers += later.numbers
        self.others += later.others
        self.dates += later.dates
        self.flags += later.flags
        self.like_numbers += later.like_numbers
        self.like_a_number = self.like_a_number or later.like_a_number
        self.has_codes |= later.has_codes
        if self.words is not None:
            self.words.update(later.words or ())
            if later.words is None or len(self.words) > MAX_WORDS:
                self.words = None
        if self.ends is None or later.ends is None:
            self.ends = self.ends or later.ends
        else:
            follows = self.ends[1] + 1 == later.ends[0]
            self.ends = (self.ends[0], later.ends[1]) if follows else (np.nan, np.nan)

    def type(self, name: str) -> tuple[ColumnType, LeftOut | None]:
        """The column's type and, where that is "ignore", why. Raises DataError where the user has to set the type."""
        known = self.numbers + self.others
        if not known:
            return "ignore", LeftOut("empty")
        if self.words is not None and len(self.words) == 1 and self.cells == known and not self.empty:
            return "ignore", LeftOut("the same in every row")
        if self.flags >= SHARE * known:
            return "flag", None
        if self.numbers >= SHARE * known and not self.has_codes:
            is_count = self.ends is not None and self.ends[1] - self.ends[0] + 1 == self.cells
            if is_count and self.cells > FEW_WORDS:
                return "ignore", LeftOut("numbers the rows")
            return "number", None
        if self.dates >= SHARE * known:
            return "date", None
        if max(self.numbers, self.dates) + self.like_numbers >= SHARE * known and not self.has_codes:
            raise DataError(
                f'the column "{name}" holds numbers or dates in a spelling that is not read, such as '
                f"{self.like_a_number[:_MAX_CHARACTERS]}: write numbers as 1234.50 and dates as 2026-12-31, or set "
                f"dataset.columns to {typed(name, 'category')} or {typed(name, 'ignore')}"
            )
        if self.words is None:
            why = f"more than {MAX_WORDS:,} different values, as identifiers or texts have"
            return "ignore", LeftOut(why, may_be_text=True)
        if len(self.words) > max(FEW_WORDS, known / 2):
            why = "identifiers or texts: most rows have a value of their own"
            return "ignore", LeftOut(why, may_be_text=True)
        return "category", None


def typed(name: str, kind: ColumnType) -> str:
    """The value of `dataset.columns` that gives a column this type, in YAML."""
    if name.isprintable():
        return as_yaml_file({name: kind}, in_one_line=True).strip()
    return f"{{{json.dumps(name)}: {kind}}}"  # in one line, also with line breaks in the name


def _has_codes(cells: pa.Array, numbers: np.ndarray) -> bool:
    """Whether some of the cells are codes. `numbers` float64 [n] are those of all cells."""
    candidates = begins_with_zero_and_digit(cells)
    if candidates.any() and pc.any(pc.match_substring_regex(cells.filter(pa.array(candidates)), _CODE)).as_py():
        return True
    is_large = np.isfinite(numbers) & (np.abs(numbers) >= EXACT)
    return bool(is_large.any() and _has_large_whole_number(cells))


def begins_with_zero_and_digit(cells: pa.Array) -> np.ndarray:
    """Whether each cell does, after a sign if it has one, bool [n]: much quicker than a regular expression."""
    starts, lengths, characters = text_bytes(cells)
    if not len(characters):
        return np.zeros(len(cells), bool)
    first, second, third = (characters.take(starts + position, mode="clip") for position in range(3))
    has_sign = ((first == ord("+")) | (first == ord("-"))) & (lengths > 2)
    is_code = (lengths > 1) & (first == ord("0")) & (second - ord("0") < 10)
    return is_code | (has_sign & (second == ord("0")) & (third - ord("0") < 10))


def _has_large_whole_number(cells: pa.Array) -> bool:
    is_large = np.abs(as_numbers(cells)[0]) >= EXACT  # of different cells, where these are fewer
    return bool(pc.any(pc.match_substring_regex(cells.filter(pa.array(is_large)), _WHOLE)).as_py())


@dataclass
class TypeFinder:
    """A LabelReader that also finds the types of columns."""

    labels: LabelReader
    found: dict[str, CellCounts]
    """The types found so far, by column; other columns are ignored."""

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray | None]:
        add_rows(self.found, rows)
        return self.labels.read(rows, on_bad)

    def merge(self, later: "TypeFinder") -> Translation:
        for name, each in later.found.items():
            self.found[name].merge(each)
        return self.labels.merge(later.labels)

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> tuple[Survey[T], Target]:
        return self.labels.fit(survey, dataset, bad)


def first_types(names: Sequence[str], parts: Sequence[SourcePart]) -> dict[str, CellCounts]:
    """The types found in the first rows, which usually are those of all."""
    found, rows_seen = {name: CellCounts() for name in names}, 0
    for rows in chain.from_iterable(part.read(names, leave_out) for part in parts):
        add_rows(found, rows)
        rows_seen += len(rows.table)
        if rows_seen >= FIRST_ROWS:
            break
    return found


def add_rows(found: Mapping[str, CellCounts], rows: Rows) -> None:
    for name, each in found.items():
        each.add(cells_of(rows, name), read_cells(rows, name, "number"))
