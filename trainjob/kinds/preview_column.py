"""A column in a preview of a table, and what its cells may be."""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

from trainjob.data.read.label_lists import OFF, ON, SEPARATOR, canonical, labels_in, notation_of
from trainjob.errors import DataError
from trainjob.kinds.inputs.column_types import SHARE, CellCounts

WORDS_OF_TEXT, WORDS_OF_TITLE = 3, 2
"""The fewest words of a cell, on average, in a column of texts, and in one of titles, most of which are different."""
MAX_CLASSES = 50
"""Most different values of a column that is proposed as the label because of its values."""


@dataclass
class Column:
    """A column of the rows that were read."""

    found: CellCounts = field(default_factory=CellCounts)
    words: int = 0
    """Words of all cells."""

    @property
    def is_text(self) -> bool:
        cells = self.found.cells
        is_unique = self.found.words is None or len(self.found.words) > cells / 2
        words = WORDS_OF_TITLE if is_unique else WORDS_OF_TEXT
        is_wordy = bool(cells) and self.found.others > cells / 2 and self.words >= words * cells
        return is_wordy and not self.is_date and not self.is_bracketed and not self.lists_labels

    @property
    def is_date(self) -> bool:
        return self.found.dates > self.found.cells / 2

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers and no codes, such as 01234."""
        return self.found.numbers >= SHARE * (self.found.numbers + self.found.others) > 0 and not self.found.has_codes

    @property
    def has_few(self) -> bool:
        """Whether its cells have few enough different values to be the classes of a label."""
        return not self.is_text and not self.is_date and 2 <= (self.classes or 0) <= MAX_CLASSES

    @property
    def is_bracketed(self) -> bool:
        """Whether its cells hold lists or objects, as JSON or as Python writes them."""
        return bool(self.found.words) and all(word[0] + word[-1] in ("[]", "{}") for word in self.found.words or ())

    @cached_property
    def lists_labels(self) -> bool:
        """Whether its cells list labels, in brackets or as a|b, which then occur in several cells."""
        words = self.found.words or set[str]()
        if not self.is_bracketed and not any(SEPARATOR in word for word in words):
            return False
        try:
            labels = {label for word in words for label in labels_in(word, notation_of(word))}
        except ValueError:
            return False
        return len(labels) <= len(words) if self.is_bracketed else len(labels) < len(words)

    @property
    def measures(self) -> bool:
        """Whether its cells are numbers that are neither classes nor count the rows."""
        ends = self.found.ends
        return self.is_number and self.classes is None and (ends is None or math.isnan(ends[0]))

    @property
    def is_flag(self) -> bool:
        """Whether its cells are 0 and 1, true and false, or yes and no, each of which occurs."""
        return self.may_be_flag and bool(self._flags & set(ON)) and bool(self._flags & set(OFF))

    def is_learned(self, name: str) -> bool:
        """Whether a model of tables would learn from the column, which has this name."""
        return not self.problem(name) and self.found.type(name)[0] != "ignore"

    def problem(self, name: str) -> str:
        """Why the type of the column, which has this name, is not clear; empty where it is."""
        try:
            self.found.type(name)
        except DataError as error:
            return str(error).partition(", or set")[0]
        return ""

    @property
    def may_be_flag(self) -> bool:
        """Whether its cells are 0 and 1, true and false, or yes and no; perhaps all the same."""
        return bool(self._flags) and self._flags <= {*ON, *OFF}

    @property
    def _flags(self) -> set[str]:
        return {canonical(word.lower()) for word in self.found.words or ()}

    @property
    def classes(self) -> int | None:
        """The number of different values; None where they are too many to be classes, or numbers that measure
        something."""
        words = self.found.words
        if words is None or len(words) > self.found.cells / 2:
            return None
        has_fractions = len(words) > 2 and any(re.fullmatch(r"[+-]?\d*\.\d+", word) for word in words)
        return None if has_fractions or (self.is_number and len(words) > MAX_CLASSES) else len(words)
