"""Recognizes columns of numbers whose points separate thousands, as 1.234 does in much of Europe."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from trainjob.data.read.rows import Rows, as_text

_FEWEST = 3
_ENOUGH = 1000
"""Different numbers from which on further ones are not looked at."""
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_SMALL = re.compile(r"[+-]?\d{1,3}", re.ASCII)


@dataclass
class Thousands:
    """Looks at the numbers of a column. Picklable."""

    seen: set[str] | None = field(default_factory=set[str])
    """The different numbers; None once one of them can only be a number with a decimal point, or a large one without
    a point."""

    def look_at(self, rows: Rows, column: str) -> None:
        """Looks at the cells of a column, as long as they may change what is known."""
        if self.seen is not None and len(self.seen) < _ENOUGH:
            cells = as_text(rows.table[column], column, rows.where).unique().drop_null()
            self.add(cell.strip() for cell in cells.to_pylist())

    def add(self, numbers: Iterable[str]) -> None:
        """Looks at numbers as they are written, without blanks around them; empty ones are ignored."""
        for number in numbers:
            if self.seen is None:
                return
            if _GROUPED.fullmatch(number) or _SMALL.fullmatch(number):
                self.seen.add(number)
            elif number:
                self.seen = None

    def merge(self, later: "Thousands") -> None:
        self.seen = None if self.seen is None or later.seen is None else self.seen | later.seen

    def note(self) -> str | None:
        """A clause about a column in which each number with a point has three digits after it, and the others are
        small. None for other columns."""
        grouped = sorted(number for number in self.seen or () if "." in number)
        if len(grouped) < _FEWEST or len(grouped) == len(self.seen or ()):
            return None
        return (
            f"points seem to separate thousands, as in {grouped[0]}, but are read as decimal points: if it is "
            f"{grouped[0].replace('.', '')}, write it so"
        )
