"""Unusable rows: counted by kind, with the locations of the first ones, and reported all at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trainjob.api import Source
from trainjob.api.data_profile import Dropped
from trainjob.data.read.rows import OnBadRow, RowLocation, Rows
from trainjob.errors import DataError, RowError, listed
from trainjob.formatting import cut
from trainjob.redaction import without_secrets

SHOWN = 5
"""Rows of each kind whose location is reported."""
_GROUPS = 16
_MAX_CHARACTERS = 200
"""Characters shown of one row."""


class TooFewRows(DataError):
    """Too few usable rows are left, even if the others are dropped."""


class ShownRow(NamedTuple):
    """A row in a message."""

    text: str
    """The row's location, and the details of its mistake."""
    file: str = ""
    """The file that the text begins with, if the file has other rows."""


@dataclass
class BadRowGroup:
    """Rows with the same mistake."""

    rows: int = 0
    first: list[ShownRow] = field(default_factory=list[ShownRow])
    message: str = ""
    """The error message if there is only one such row."""
    advice: str = ""


@dataclass
class BadRows:
    """The unusable rows of a set. Picklable."""

    source: str = ""
    """Name of the set and its source."""
    mistakes: dict[str, BadRowGroup] = field(default_factory=dict[str, BadRowGroup])

    @classmethod
    def of_set(cls, name: str, source: Source) -> "BadRows":
        """An empty count for the set `name` of a TrainJob."""
        return cls(f"spec.dataset.{name} ({listed(source.all_uris)})")

    @property
    def count(self) -> int:
        return sum(mistake.rows for mistake in self.mistakes.values())

    def add(self, error: RowError) -> None:
        """Counts a row."""
        location = error.location
        text = f"{location}: {error.detail}" if error.detail else location
        file = location.file if isinstance(location, RowLocation) and location.number is not None else ""
        self.add_rows(error.kind, 1, ShownRow(text, file), str(error), error.advice)

    def add_rows(self, name: str, rows: int, first: ShownRow, message: str, advice: str = "") -> None:
        """Counts several rows of one kind that share one error, `first`."""
        mistake = self.mistakes.setdefault(name, BadRowGroup(message=message, advice=advice))
        mistake.rows += rows
        if len(mistake.first) < SHOWN:
            text, file = without_secrets(first.text), without_secrets(first.file)
            mistake.first.append(ShownRow(cut(text, _MAX_CHARACTERS), file))

    def advise(self, error: RowError) -> None:
        """Sets the advice for the rows that were counted with this kind of error."""
        if (mistake := self.mistakes.get(error.kind)) is not None:
            mistake.advice, mistake.message = error.advice, f"{mistake.message}; {error.advice}"

    def merge(self, later: "BadRows") -> None:
        """Adds the counts of a later part of the set."""
        for name, other in later.mistakes.items():
            mistake = self.mistakes.setdefault(name, BadRowGroup(message=other.message, advice=other.advice))
            mistake.rows += other.rows
            mistake.first = [*mistake.first, *other.first][:SHOWN]

    def dropped(self) -> list[Dropped]:
        """The counts for the data profile."""
        return [
            Dropped(reason=name, rows=mistake.rows, first=[row.text for row in mistake.first])
            for name, mistake in self.mistakes.items()
        ]

    def lines(self, counted: bool = True) -> list[str]:
        """One line for each kind, which begins with its number of rows if `counted`."""
        return [
            mistake.message if mistake.rows == 1 else _line(name, mistake, counted)
            for name, mistake in self.mistakes.items()
        ]


def _line(name: str, mistake: BadRowGroup, counted: bool) -> str:
    count = f"{mistake.rows:,} rows: " if counted else ""
    advice = f" ({mistake.advice})" if mistake.advice else ""
    more = mistake.rows - len(mistake.first)
    locations = "; ".join(_locations(mistake.first)) + (f" and {more:,} more" if more > 0 else "")
    return f"{count}{name}{advice}: {locations}"


def _locations(rows: Sequence[ShownRow]) -> Iterator[str]:
    """The texts of the rows. Of consecutive rows of one file, only the first names it."""
    yield rows[0].text
    for before, row in pairwise(rows):
        yield row.text.removeprefix(f"{row.file}, ") if row.file and row.file == before.file else row.text


def valid_rows(rows: Rows, check: Callable[[Rows], object], on_bad: OnBadRow) -> np.ndarray:
    """Indices of the rows that pass `check`; `on_bad` is called with the RowError of each other row."""
    valid = _valid(rows, np.arange(len(rows.table)), check, on_bad)
    return np.concatenate([np.empty(0, int), *valid])


def _valid(rows: Rows, indices: np.ndarray, check: Callable[[Rows], object], on_bad: OnBadRow) -> Iterator[np.ndarray]:
    """The `indices` of the rows that pass. If not all do, they are checked in smaller groups, because checking many
    rows at once may cost little more than checking one."""
    try:
        check(rows.take(indices))
    except RowError as error:
        if len(indices) == 1:
            on_bad(error)
            return
        for group in np.array_split(indices, min(len(indices), _GROUPS)):
            yield from _valid(rows, group, check, on_bad)
    else:
        yield indices


def bad_rows_error(
    bad: Mapping[str, BadRows], rows: Mapping[str, int], problem: str = "", advice: str = ""
) -> DataError:
    """An error about the bad rows of all sets. `rows` has the number of usable rows of each set, if known; `problem` is
    another problem, if any."""
    lines: list[str] = []
    for name, found in bad.items():
        if found.count:
            total = f" of {found.count + rows[name]:,}" if name in rows else ""
            noun = "row" if found.count == 1 and not total else "rows"
            lines.append(f"{found.source}: {found.count:,}{total} {noun} cannot be used")
            lines += [f"  {line}" for line in found.lines()]
    return DataError("\n".join([*lines, *(line for line in (problem, advice) if line)]))
