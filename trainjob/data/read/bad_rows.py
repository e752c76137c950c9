"""Rows that cannot be used: counted by kind, with where the first of them are, and told all at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from trainjob.api import Source
from trainjob.api.data_profile import Dropped
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import DataError, RowError, listed
from trainjob.redaction import without_secrets

SHOWN = 5
"""Rows of each kind whose place is told."""
_LONGEST = 200
"""Characters that are told of one row."""


class TooFewRows(DataError):
    """The rows that can be used are too few, whether or not the others are dropped."""


@dataclass
class Kind:
    """Rows with the same mistake."""

    rows: int = 0
    first: list[str] = field(default_factory=list[str])
    """Where the first of them are, and what is particular to each."""
    message: str = ""
    """What an error says of the first one alone."""
    advice: str = ""


@dataclass
class BadRows:
    """The rows of a set that cannot be used. Picklable."""

    source: str = ""
    """The set, and where it comes from."""
    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])

    @classmethod
    def of_set(cls, name: str, source: Source) -> "BadRows":
        """None yet, of the set `name` of a TrainJob."""
        return cls(f"spec.dataset.{name} ({listed(source.all_uris)})")

    @property
    def count(self) -> int:
        return sum(kind.rows for kind in self.kinds.values())

    def add(self, error: RowError) -> None:
        """Count a row."""
        self.add_rows(error.kind, 1, f"{error.place}: {error.detail}" if error.detail else error.place, str(error))

    def add_rows(self, name: str, rows: int, first: str, message: str, advice: str = "") -> None:
        """Count several rows of one kind that are told of in one text, `first`."""
        kind = self.kinds.setdefault(name, Kind(message=message, advice=advice))
        kind.rows += rows
        if len(kind.first) < SHOWN:
            shown = without_secrets(first)
            kind.first.append(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…")

    def merge(self, later: "BadRows") -> None:
        """Count the rows of a later part of the set."""
        for name, other in later.kinds.items():
            kind = self.kinds.setdefault(name, Kind(message=other.message, advice=other.advice))
            kind.rows += other.rows
            kind.first = [*kind.first, *other.first][:SHOWN]

    def dropped(self) -> list[Dropped]:
        """What the data's profile says of them."""
        return [Dropped(reason=name, rows=kind.rows, first=kind.first) for name, kind in self.kinds.items()]

    def lines(self, counted: bool = True) -> list[str]:
        """A line for each kind, which begins with its number of rows if `counted`."""
        return [kind.message if kind.rows == 1 else _line(name, kind, counted) for name, kind in self.kinds.items()]


def _line(name: str, kind: Kind, counted: bool) -> str:
    count = f"{kind.rows:,} rows: " if counted else ""
    advice = f" ({kind.advice})" if kind.advice else ""
    more = kind.rows - len(kind.first)
    places = "; ".join(kind.first) + (f" and {more:,} more" if more > 0 else "")
    return f"{count}{name}{advice}: {places}"


def sound_rows(rows: Rows, check: Callable[[Rows], object], on_bad: OnBadRow) -> np.ndarray:
    """Indices of the rows that `check` raises no RowError for; `on_bad` is told of the others."""
    every = np.arange(len(rows.table))
    try:
        check(rows)
    except RowError:
        return np.array(
            [index for index in every if _is_sound(rows.take(every[index : index + 1]), check, on_bad)], int
        )
    return every


def _is_sound(row: Rows, check: Callable[[Rows], object], on_bad: OnBadRow) -> bool:
    try:
        check(row)
    except RowError as error:
        on_bad(error)
        return False
    return True


def bad_rows_error(
    bad: Mapping[str, BadRows], rows: Mapping[str, int], problem: str = "", advice: str = ""
) -> DataError:
    """An error that tells of the bad rows of all sets, `rows` being how many others each has where that is known, and
    of another `problem`, if there is one."""
    lines: list[str] = []
    for name, found in bad.items():
        if found.count:
            total = f" of {found.count + rows[name]:,}" if name in rows else ""
            noun = "row" if found.count == 1 and not total else "rows"
            lines.append(f"{found.source}: {found.count:,}{total} {noun} cannot be used")
            lines += [f"  {line}" for line in found.lines()]
    return DataError("\n".join([*lines, *(line for line in (problem, advice) if line)]))
