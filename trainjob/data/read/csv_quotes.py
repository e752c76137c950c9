"""Finds CSV rows that Arrow silently reads wrong because of a quote.

A quoted value ends at the next quote that is not doubled. If the closing quote is missing, the value swallows the
following rows, up to the opening quote of another value. If quotes are escaped by backslashes, the value ends too
early, and the backslashes become part of it.
"""

import codecs
from dataclasses import dataclass, field

import numpy as np

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_LINE_BREAKS = (ord("\n"), ord("\r"))
ESCAPED = "a quote is escaped by a backslash, as Spark writes it; CSV doubles it (in Spark: the option escape='\"')"
NOT_CLOSED = "a value begins with a quote that is not closed; close it, or double it if it is a part of the text"


@dataclass(frozen=True)
class BadQuote:
    """The error of a row."""

    kind: str
    lines: int = 0
    """Number of following lines that the row has swallowed."""

    @property
    def detail(self) -> str:
        lines = "the line that follows" if self.lines == 1 else f"the {self.lines:,} lines that follow"
        return f"it spans {lines}" if self.lines else ""


@dataclass
class QuoteCheck:
    """Checks a file's bytes in order, in chunks of any size."""

    delimiter: str
    bad: dict[int, BadQuote] = field(default_factory=dict[int, BadQuote])
    """The errors by row number. The first line that is not blank has number 0, so rows after a header count from 1."""
    _kept: bytes = b""
    """The end of the last chunk, if its meaning depends on the next byte."""
    _last: int = _LINE_BREAKS[0]
    """The byte before the next chunk."""
    _rows: int = 0
    """Completed rows."""
    _lines: int = 0
    """Completed lines, inside values or not, without blank lines."""
    _inside: bool = False
    """Whether the next chunk begins inside a quoted value."""
    _opened: int = 0
    """`_lines` at the beginning of that value."""
    _has_begun: bool = False

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes of the file; empty at its end."""
        if not self._has_begun:
            piece, self._has_begun = piece.removeprefix(codecs.BOM_UTF8), True
        text = self._kept + piece
        whole = len(text.rstrip(b'"\\')) if piece else len(text)
        self._kept = text[whole:]
        if whole:
            self._scan(np.frombuffer(text, np.uint8, whole), has_returns=b"\r" in text)
        if not piece and self._inside:
            lines = self._lines - self._opened - (self._last in _LINE_BREAKS)  # the last one has nothing after it
            self.bad[self._rows] = BadQuote(NOT_CLOSED, lines)

    def _scan(self, text: np.ndarray, has_returns: bool) -> None:
        """uint8 [n]. What is at its end does not depend on what follows."""
        is_break = text == _LINE_BREAKS[0]
        if has_returns:
            is_break |= text == _LINE_BREAKS[1]
        breaks = np.flatnonzero(is_break)
        ends = breaks[np.diff(breaks, prepend=-1 if self._last in _LINE_BREAKS else -2) > 1]
        toggles, early = self._toggles(text)
        is_inside = (np.searchsorted(toggles, ends) + self._inside) % 2 == 1
        rows = np.append(0, np.cumsum(~is_inside))

        def lines_before(offset: int) -> int:
            return int(np.searchsorted(ends, offset))

        for opening, closing in early:
            opened = self._opened if opening is None else self._lines + lines_before(opening)
            lines = self._lines + lines_before(closing) - opened
            if _is_escaped(text, closing):
                self.bad.setdefault(self._rows + int(rows[lines_before(closing)]), BadQuote(ESCAPED))
            elif lines and not self._ends_in_blanks(text, closing):
                self.bad.setdefault(self._rows + int(rows[lines_before(closing)]), BadQuote(NOT_CLOSED, lines))
        is_doubled = np.diff(toggles, prepend=-2) == 1
        openings = toggles[int(self._inside) :: 2][~is_doubled[int(self._inside) :: 2]]
        if len(openings):
            self._opened = self._lines + lines_before(int(openings[-1]))
        self._inside ^= bool(len(toggles) % 2)
        self._rows += int(rows[-1])
        self._lines += len(ends)
        self._last = int(text[-1])

    def _ends_in_blanks(self, text: np.ndarray, closing: int) -> bool:
        """Whether only blanks separate the closing quote from the end of the value, as some programs write."""
        end = closing + 1
        while end < len(text) and text[end] == ord(" "):
            end += 1
        return end == len(text) or text[end] in (ord(self.delimiter), *_LINE_BREAKS)

    def _toggles(self, text: np.ndarray) -> tuple[np.ndarray, list[tuple[int | None, int]]]:
        """The positions where quoted values begin and end, int64 [m]; and for each value that continues after its
        closing quote, the positions of its opening quote, None if it is before `text`, and of its closing one."""
        quotes = np.flatnonzero(text == _QUOTE)
        if not len(quotes):
            return quotes, []
        borders = np.array([ord(self.delimiter), *_LINE_BREAKS], np.uint8)
        before = np.where(quotes > 0, text[quotes - 1], np.uint8(self._last))
        after = np.append(text, borders[-1])[quotes + 1] if quotes[-1] + 1 == len(text) else text[quotes + 1]
        can_open, can_close = np.isin(before, borders), np.isin(after, borders)
        opens = (np.arange(len(quotes)) + self._inside) % 2 == 0
        # A doubled quote may as well be taken as one that closes and one that opens.
        if np.where(opens, can_open | (before == _QUOTE), can_close | (after == _QUOTE)).all():
            return quotes, []
        return _walk(quotes.tolist(), can_open.tolist(), can_close.tolist(), self._inside)


def _walk(
    quotes: list[int], can_open: list[bool], can_close: list[bool], inside: bool
) -> tuple[np.ndarray, list[tuple[int | None, int]]]:
    """Does the same as the fast path, but quote by quote: some quotes are plain characters of a value."""
    toggles: list[int] = []
    early: list[tuple[int | None, int]] = []
    opening, index = None, 0
    while index < len(quotes):
        offset = quotes[index]
        if inside and index + 1 < len(quotes) and quotes[index + 1] == offset + 1:
            index += 1
        elif inside:
            inside = False
            toggles.append(offset)
            if not can_close[index]:
                early.append((opening, offset))
        elif can_open[index]:
            inside, opening = True, offset
            toggles.append(offset)
        index += 1
    return np.array(toggles, np.int64), early


def _is_escaped(text: np.ndarray, offset: int) -> bool:
    first = offset
    while first and text[first - 1] == _BACKSLASH:
        first -= 1
    return (offset - first) % 2 == 1
