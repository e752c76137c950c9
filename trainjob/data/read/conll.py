"""Reads files of CoNLL columns: a line for each token with its tag in the last column, a blank line between
sentences."""

import codecs
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from trainjob.data.read.opening import open_stream, readable
from trainjob.data.read.rows import TABLE_ROWS, OnBadRow, RowLocation, Rows, check_columns, found_columns, refuse
from trainjob.data.read.text_check import check_text
from trainjob.data.read.token_tags import is_tag
from trainjob.errors import DataError, RowError

LINE_BYTES = 2**20
TOKENS, TAGS = "tokens", "tags"
_UNIVERSAL_ID = re.compile(r"\d+([-.]\d+)?")
"""The first column of CoNLL-U: of a token, of a word of several tokens, or of one that is not in the text."""
_BETWEEN = re.compile(r"[ \t]+")
_DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True)
class ConllFile:
    """A row is a sentence: the column `tokens` lists its tokens, and `tags` their tags, both in JSON. Columns of the
    file are between tabs or, on a line without one, blanks. Lines of -DOCSTART- and comments with # before a sentence
    are left out. Rows are named by their first line."""

    uri: str
    endpoint: str | None
    size: int
    optional: tuple[str, ...] = ()
    """Columns that may be missing: without `tags`, each line is only a token."""

    def read(self, columns: Sequence[str] | None, on_bad: OnBadRow = refuse) -> Iterator[Rows]:
        wanted = [TOKENS, TAGS] if columns is None else list(columns)
        wanted = found_columns(wanted, [TOKENS, TAGS], self.uri, self.optional)
        check_columns(wanted, [TOKENS, TAGS], self.uri)
        with readable(self.uri, "CoNLL"), open_stream(self.uri, self.endpoint) as file:
            sentences = self._sentences(self._lines(file), on_bad)
            while some := list(itertools.islice(sentences, TABLE_ROWS)):
                numbers, cells = zip(*some, strict=True)
                table = pa.table(
                    {name: pa.array([each[name] for each in cells], pa.string()) for name in (TOKENS, TAGS)}
                )
                size = sum(len(each[TOKENS]) + len(each[TAGS] or "") for each in cells)
                yield Rows(table.select(wanted), lambda index, numbers=numbers: self._where(numbers[index]), size)

    def schema(self) -> pa.Schema:
        """Names and types of the columns, as in tables of tokens and tags."""
        return pa.schema([(TOKENS, pa.list_(pa.string())), (TAGS, pa.list_(pa.string()))])

    def _where(self, number: int) -> RowLocation:
        return RowLocation(self.uri, "line", number)

    def _lines(self, file: pa.NativeFile) -> Iterator[tuple[int, bytes]]:
        """The number and content of each line."""
        buffered = io.BufferedReader(file)
        check_text(buffered.peek(1), self.uri)
        for number, line in enumerate(iter(lambda: buffered.readline(LINE_BYTES + 1), b""), 1):
            if len(line) > LINE_BYTES:
                raise DataError(f"{self._where(number)} is longer than {LINE_BYTES // 2**20} MiB: is this CoNLL?")
            yield number, (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")

    def _sentences(
        self, lines: Iterable[tuple[int, bytes]], on_bad: OnBadRow
    ) -> Iterator[tuple[int, dict[str, str | None]]]:
        """The number of the first line of each sentence, and its cells."""
        for is_blank, group in itertools.groupby(lines, key=lambda line: not line[1].strip()):
            if is_blank:
                continue
            try:
                split = [(number, self._split(number, line)) for number, line in group]
                split = list(itertools.dropwhile(lambda line: _is_remark(line[1]), split))
                split = [line for line in split if line[1][0] != _DOCUMENT]
                if split:
                    yield split[0][0], self._cells(split)
            except RowError as error:
                on_bad(error)

    def _split(self, number: int, line: bytes) -> list[str]:
        """The columns of a line. Raises RowError if it is not UTF-8."""
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            kind = "not UTF-8 text"
            detail = f"byte 0x{line[error.start]:02x} at position {error.start}"
            where = self._where(number)
            raise RowError(f"{where}: {kind}: {detail}; save the file in UTF-8", where, kind, detail) from None
        return text.split("\t") if "\t" in text else _BETWEEN.split(text.strip(" "))

    def _cells(self, lines: Sequence[tuple[int, list[str]]]) -> dict[str, str | None]:
        """Raises RowError where the lines differ in their number of columns, or have no tags and must, and DataError
        for CoNLL-U."""
        (first, columns), *_ = lines
        for number, other in lines:
            if len(other) != len(columns):
                detail = f"{len(columns)} on line {first}, {len(other)} on line {number}"
                raise self._error(number, "the lines of a sentence differ in their number of columns", detail)
        if _is_universal([line for _, line in lines]):
            raise DataError(
                f"{self._where(first)}: this is CoNLL-U, whose first column numbers the tokens: write the token into "
                "the first column and its tag, such as B-person or O, into the last"
            )
        if len(columns) == 1 and TAGS not in self.optional:
            raise self._error(first, "the line has one column", "the tag is in the last of at least two")
        tags = None if len(columns) == 1 else json.dumps([line[-1].strip() for _, line in lines], ensure_ascii=False)
        return {TOKENS: json.dumps([line[0] for _, line in lines], ensure_ascii=False), TAGS: tags}

    def _error(self, number: int, kind: str, detail: str) -> RowError:
        where = self._where(number)
        return RowError(f"{where}: {kind}: {detail}", where, kind, detail)


def _is_remark(columns: Sequence[str]) -> bool:
    """Whether a line before a sentence is a comment, not the token # with its tag."""
    return columns[0].startswith("#") and len(columns) != 1 and not is_tag(columns[-1])


def _is_universal(lines: Sequence[Sequence[str]]) -> bool:
    """Whether the lines of a sentence are CoNLL-U, and not numbers as tokens with their tags."""
    return all(len(line) == 10 and _UNIVERSAL_ID.fullmatch(line[0]) and not is_tag(line[-1]) for line in lines)
