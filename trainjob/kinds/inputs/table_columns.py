"""Columns of a table as the numbers that a network takes, fitted on training rows."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trainjob.api.dataset import ColumnType
from trainjob.data.read.rows import row_number
from trainjob.errors import RowError, notify
from trainjob.kinds.input import FormField
from trainjob.kinds.inputs.cells import EXACT, READERS, as_categories
from trainjob.kinds.look_alikes import visible

pc: Any = pyarrow.compute  # whose functions type checkers do not know

BINS = 48
"""The number of quantiles of the training rows between which a number is embedded piecewise."""
MAX_CATEGORIES = 1000
"""The most categories of a column: the most frequent values. All others share one category."""
_ROUNDED = re.compile(r"\d(\.\d+)?e\+\d+")
"""A long whole number in the notation of a float64."""
_NOUNS = {"number": "a number", "date": "a date in ISO 8601, such as 2026-11-28", "flag": "a flag, such as yes or no"}


@dataclass(frozen=True)
class NumberFeature:
    """A number that is computed from each cell of a column: its value, or a part of a date."""

    part: str
    """`value`, `month`, `weekday`, `hour`, or `missing`: 1 if the cell is missing."""
    typical: float
    """The median, which replaces missing cells."""
    knots: list[float]
    """Quantiles of the training rows, in ascending order."""
    levels: list[float]
    """The value of each knot for the network: that of a normal distribution at the same quantile. So an outlier,
    however large, is at one end of the distribution."""

    @classmethod
    def fit(cls, part: str, values: np.ndarray) -> "NumberFeature | None":
        """`values` is float64 [n], NaN where missing. None where all are equal."""
        known = np.clip(values[~np.isnan(values)], np.finfo(np.float64).min, np.finfo(np.float64).max)
        if not len(known):
            return None
        positions = np.linspace(0, 1, BINS + 1)
        knots, index = np.unique(np.quantile(known, positions, method="nearest"), return_inverse=True)
        if len(knots) == 1:
            return None
        middles = np.bincount(index, positions) / np.bincount(index)
        normal, edge = NormalDist(), 1 / (2 * BINS)
        levels = [normal.inv_cdf(float(np.clip(middle, edge, 1 - edge))) for middle in middles]
        return cls(part, float(np.quantile(known, 0.5, method="nearest")), knots.tolist(), levels)

    def transform(self, values: np.ndarray) -> np.ndarray:
        """float32 [n] of values float64 [n], NaN where missing."""
        filled = np.where(np.isnan(values), self.typical, values)
        return np.interp(filled, self.knots, self.levels).astype(np.float32)


@dataclass(frozen=True)
class Categories:
    """The values of a column of categories, and their indices from 0."""

    names: list[str]
    """The most frequent first."""
    other: int
    """The index for all other values: an extra one if training rows have other values, otherwise that of the most
    frequent value."""
    missing: int
    """The index for missing cells, chosen in the same way."""
    count: int
    """The number of indices."""

    @classmethod
    def fit(cls, cells: list[str | None]) -> Self:
        counts = Counter(cells)
        missing = counts.pop(None, 0)
        ordered = sorted(counts, key=lambda name: (-counts[str(name)], str(name)))
        names = [str(name) for name in ordered if counts[name] > 1 or len(counts) <= 2][:MAX_CATEGORIES]
        has_others = len(names) < len(counts)
        other = len(names) if has_others else 0
        return cls(
            names,
            other,
            len(names) + has_others if missing else other,
            max(1, len(names) + has_others + bool(missing)),
        )

    def unknown(self, cells: pa.Array) -> set[str]:
        """The distinct cells that are not a category."""
        return set(pc.unique(cells).drop_null().to_pylist()).difference(self.names)

    def without_digits(self, unknown: set[str]) -> dict[str, str]:
        """Maps each cell that lacks digits of a category to this category: leading zeros, such as 1003 to 01003, or the
        last ones of a long number, such as 1.152921504606847e+18 to 1152921504606846979."""
        found = {cell: self._codes[cell] for cell in unknown if cell in self._codes}
        if not self._long_numbers:
            return found
        rounded = {cell: float(cell) for cell in unknown if _ROUNDED.fullmatch(cell)}
        near = self._long_numbers
        return found | {cell: near[number] for cell, number in rounded.items() if number in near}

    def look_alike(self, unknown: set[str]) -> tuple[str, str] | None:
        """The first cell that differs from a category only in case, blanks or invisible characters, and that
        category."""
        some = sorted(unknown)[:MAX_CATEGORIES]
        return next(((cell, self._by_look[key]) for cell in some if (key := visible(cell)) in self._by_look), None)

    @cached_property
    def _codes(self) -> dict[str, str]:
        """Maps the digits of each category with leading zeros to the category."""
        return {name.lstrip("0"): name for name in self.names if name.startswith("0") and name.isdecimal()}

    @cached_property
    def _long_numbers(self) -> dict[float, str]:
        """Maps the nearest float64 of each category that is a whole number too long for it to the category."""
        return {float(name): name for name in self.names if name.isdecimal() and int(name) >= EXACT}

    @cached_property
    def _by_look(self) -> dict[str, str]:
        return {visible(name): name for name in self.names}

    def transform(self, cells: pa.Array) -> np.ndarray:
        """The index of each cell, int64 [n]; null counts as missing."""
        numbers = pc.fill_null(pc.index_in(cells, pa.array(self.names, pa.string())), -1).to_numpy(zero_copy_only=False)
        is_missing = pc.is_null(cells).to_numpy(zero_copy_only=False)
        return np.where(is_missing, self.missing, np.where(numbers < 0, self.other, numbers)).astype(np.int64)


@dataclass(frozen=True)
class TableColumn:
    """A column that the network reads."""

    name: str
    type: ColumnType
    numbers: list[NumberFeature]
    categories: Categories | None

    @property
    def example(self) -> str | float | None:
        """A typical cell, made from the statistics: a real row could disclose training data."""
        if self.type == "text":
            return "…"
        if self.categories is not None:
            return next(iter(self.categories.names), None)
        value = next((feature.typical for feature in self.numbers if feature.part == "value"), None)
        if value is None or self.type == "number":
            return value
        return str(np.datetime64(int(value), "D")) if self.type == "date" else ("yes" if value else "no")

    @property
    def form_field(self) -> FormField:
        is_text = self.type == "text"
        return FormField(self.name, is_text, None if is_text else self.example)

    @classmethod
    def fit(cls, name: str, kind: ColumnType, cells: pa.Array) -> "TableColumn | None":
        """Fits on cells of training rows. None where all are equal. Cells that cannot be read count as missing."""
        if kind == "category":
            values = as_categories(cells).to_pylist()
            categories = Categories.fit(values)
            return cls(name, kind, [], categories) if len(set(values)) > 1 else None
        if kind == "text":
            return cls(name, kind, [], None) if len(pc.unique(cells)) > 1 else None
        parts = _parts(kind, READERS[kind](cells)[0])
        features = [feature for part, each in parts.items() if (feature := NumberFeature.fit(part, each))]
        return cls(name, kind, features, None) if features else None

    def raw(self, cells: pa.Array, where: Callable[[int], str] = row_number) -> list[np.ndarray]:
        """The values of each feature before they are transformed, float64 [n] with NaN for missing ones, or of the
        categories, int64 [n]; none for texts. Raises RowError for the first cell of another type."""
        if self.type == "text":
            return []
        if self.categories is not None:
            categories = as_categories(cells)
            unknown = self.categories.unknown(categories)
            for cell, name in self.categories.without_digits(unknown).items():
                notify(
                    f'column "{self.name}": {cell} is not a category, but {name} is: write codes with all their digits'
                )
            if found := self.categories.look_alike(unknown):
                notify(f'column "{self.name}": "{found[0]}" is not a category, but "{found[1]}" is: write it like that')
            return [self.categories.transform(categories)]
        values, is_bad = READERS[self.type](cells)
        if is_bad.any():
            raise self._error(int(is_bad.argmax()), cells, where)
        parts = _parts(self.type, values)
        return [parts[feature.part] for feature in self.numbers]

    def filled(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The result of `raw`, with the typical number where one is missing, if training had none missing: LightGBM
        would read it as 0. See findings/trees-disagree-on-a-first-missing-number.sh."""
        if not self.numbers or any(feature.part == "missing" for feature in self.numbers):
            return values
        return [
            np.where(np.isnan(each), feature.typical, each) for feature, each in zip(self.numbers, values, strict=True)
        ]

    def _error(self, index: int, cells: pa.Array, where: Callable[[int], str]) -> RowError:
        problem = f"does not hold {_NOUNS[self.type]}"
        kind, shown = f'column "{self.name}" {problem}', f'"{cells[index].as_py()[:100]}"'
        cell = self.name, f"{problem}: {shown}"
        return RowError(f"{where(index)}: {kind}: {shown}", where(index), kind, shown, cell)

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Loads the fields that `dataclasses.asdict` returned."""
        numbers = [NumberFeature(**each) for each in state["numbers"]]
        categories = state["categories"] and Categories(**state["categories"])
        return cls(**state | {"numbers": numbers, "categories": categories})


def _parts(kind: ColumnType, values: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers that a network may learn from: those of the cells and, of dates in days since 1970, their month from
    1, weekday from 0 for Monday, and hour; and whether cells are missing. All float64 [n]."""
    parts, is_missing = {"value": values}, np.isnan(values)
    if kind == "date":
        whole = np.floor(np.where(is_missing, 0, values))
        months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
        for name, part in (("month", months), ("weekday", (whole + 3) % 7), ("hour", 24 * (values - whole))):
            parts[name] = np.where(is_missing, np.nan, part)
    return parts | {"missing": is_missing.astype(np.float64)}
