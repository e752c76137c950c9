"""One JSON array of rows, as `json.dump` and many exports write it, cut into the texts of its items."""

import codecs
import io
import json
import re
from collections.abc import Iterator

from trainjob.errors import DataError

_PIECE_CHARACTERS = 2**20
_BLANKS = re.compile(r"[ \t\r\n]*")


def is_array(file: io.BufferedReader) -> bool:
    """Whether a newly opened file begins with an array; does not consume anything."""
    return file.peek(1).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def items(file: io.BufferedReader, uri: str, most_characters: int) -> Iterator[tuple[int, bytes]]:
    """The number, from 1, and text of each item, read incrementally. Raises DataError for text that is not an array,
    and for an item longer than `most_characters`."""
    text = _Text(io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline=""))
    text.next_sign()  # the bracket
    number, sign = 0, text.next_sign()
    if sign != "]":
        text.offset -= 1
        sign = ","
    while sign == ",":
        number += 1
        yield number, text.value(f"{uri}, item {number}", most_characters)
        sign = text.next_sign()
    if sign != "]":
        raise DataError(f"{uri}: the JSON array is cut off or damaged after item {number:,}")
    if text.next_sign():
        raise DataError(f"{uri} has data after the end of its JSON array: write one object per line, or a single array")


class _Text:
    """The part of the file's text that has been read and not consumed."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file
        self._text = ""
        self.offset = 0

    def next_sign(self) -> str:
        """Consumes and returns the next character that is not blank; empty at the end."""
        self._skip_blanks()
        self.offset += 1
        return self._text[self.offset - 1 : self.offset]

    def value(self, where: str, most_characters: int) -> bytes:
        """Consumes and returns the text of the next value. Raises DataError if there is none or it is too long."""
        self._skip_blanks()
        while True:
            problem, end = "", len(self._text)
            try:
                end = json.JSONDecoder().raw_decode(self._text, self.offset)[1]
            except RecursionError:
                raise DataError(f"{where}: nested too deeply") from None
            except ValueError as error:
                problem = str(error).partition(":")[0]
            if end < len(self._text):  # so that a number cannot go on
                found = self._text[self.offset : end]
                self.offset = end
                return found.encode("utf-8", "surrogateescape")
            if len(self._text) - self.offset > most_characters:
                raise DataError(f"{where} is longer than {most_characters // 2**20} MiB, or not JSON: {problem}")
            if not self._read():
                raise DataError(f"{where}: not JSON: {problem or 'the array does not end'}")

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self.offset)
        assert blanks is not None
        self.offset = blanks.end()
        if self.offset == len(self._text) and self._read():
            self._skip_blanks()

    def _read(self) -> bool:
        """Reads more. False at the end of the file."""
        piece = self._file.read(_PIECE_CHARACTERS)
        self._text, self.offset = self._text[self.offset :] + piece, 0
        return bool(piece)
