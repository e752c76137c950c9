"""Quotes in CSV that would change rows without a word are found, and all others are read as they were."""

import csv
import io
import random
from pathlib import Path

import pytest
from data_specs import read, text_spec

from trainjob.data import fit
from trainjob.data.read import tables
from trainjob.data.read.csv_quotes import ESCAPED, NOT_CLOSED, QuoteCheck
from trainjob.errors import DataError

COLUMNS = ["text", "label"]
HEADER = "text,label\n"


def found(text: str, pieces: int = 1 << 20) -> dict[int, tuple[str, int]]:
    check, content = QuoteCheck(","), text.encode()
    for start in range(0, len(content), pieces):
        check.feed(content[start : start + pieces])
    check.feed(b"")
    return {row: (bad.kind, bad.lines) for row, bad in check.bad.items()}


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    ("rows", "bad"),
    [
        ('a,x\n"b c,x\nd,y\n\ne,x\n"f g",y\n', {2: (NOT_CLOSED, 3)}),  # up to the next opening quote
        ('a,x\n"b c,x\r\nd,y\r\n', {2: (NOT_CLOSED, 1)}),  # up to the end of the file
        ('a,x\nb,"x\n', {2: (NOT_CLOSED, 0)}),
        ('"a ""b"" c,x\nd,y\n"e,x\nf,y\n', {1: (NOT_CLOSED, 2)}),
        ('"he said \\"so\\" twice",x\n"\\\\" and,x\n"\\\\\\"",x\n"y",y\n', {1: (ESCAPED, 0), 3: (NOT_CLOSED, 1)}),
        ('"a\n""b""\n\nc",x\n"",y\n"""",x\n"""d""",y\n', {}),
        ('"a\nb"  ,x\n"c\nd" \r\ne,y\n', {}),
        ('5" by 7",x\na "b" c,y\n"Hello" she said,x\nC:\\,"y"\n', {}),
    ],
)
def test_bad_quotes_have_row_and_lines(rows: str, bad: dict[int, tuple[str, int]], pieces: int) -> None:
    assert found(HEADER + rows, pieces) == bad


def test_all_that_csv_can_hold_is_sound() -> None:
    chance = random.Random(0)
    for _ in range(500):
        file = io.StringIO(newline="")
        rows = [["".join(chance.choices('a",\n\r\\ ', k=chance.randint(0, 8))) for _ in "ab"] for _ in range(20)]
        csv.writer(file).writerows(rows)
        assert not found(file.getvalue(), chance.randint(1, 50))


def test_rows_that_a_quote_would_merge_are_told_or_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 200)
    good = "".join(f'"word{n}, and\nmore",{"ab"[n % 2]}\n' for n in range(40))
    path = tmp_path / "rows.csv"
    path.write_text(
        f'{HEADER}{good}"not closed,a\nlost,b\n\nlost,a\n"so "" far",a\nfine,b\n"he \\"is\\" so",b\n"gone\nx\n'
    )
    with pytest.raises(DataError) as error:
        fit(text_spec(path))
    assert str(error.value).split("\n")[1:-1] == [
        f"  2 rows: {NOT_CLOSED}: {path}, row 44: it spans the line that follows; row 41: it spans the 3 "
        "lines that follow",
        f"  {path}, row 43: {ESCAPED}",
    ]
    fitted = fit(text_spec(path, onBadRows="drop"))
    assert fitted.rows["train"] + fitted.rows["validation"] == 41


def test_rows_after_a_bad_quote_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('sep=;\ntext;label\n"a;x\nb;y\n"c";x\nd;x\n\xff;y\n', encoding="latin-1")
    with pytest.raises(DataError, match=f"row 1: {NOT_CLOSED}: it spans the 2 lines that follow"):
        read(path, COLUMNS)


def test_quoted_line_breaks_stay_wherever_a_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    texts = [f"a\r\n{'b' * (n % 7)}\r\n\nc\r" for n in range(50)]
    path.write_bytes("".join([HEADER, *(f'"{text}",x\r\n' for text in texts)]).encode())
    for size in range(60, 80):
        monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", size)
        assert [row["text"] for row in read(path, ["text"])] == texts
