"""Tables as other tools wrap them: a JSON array, a ZIP archive, Excel's first line, folders that are columns."""

import gzip
import json
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import (
    Rows,
    assert_same_examples,
    places,
    read,
    some_rows,
    text_spec,
    write_csv,
    write_jsonl,
    write_parquet,
)

from trainjob.api import Source
from trainjob.cli import predicted_tables
from trainjob.data import fit
from trainjob.data.read import json_arrays
from trainjob.data.read.rows import refuse
from trainjob.data.read.source import parts
from trainjob.data.read.split_folders import with_split_folders
from trainjob.errors import DataError, Notice

ROWS = some_rows(30)
COLUMNS = ["text", "label"]


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("piece", [1, 7, 2**20])
def test_a_json_array_is_read_as_lines_are(
    indent: int | None, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_arrays, "_PIECE_CHARACTERS", piece)
    rows: Rows = [*ROWS[:5], {"text": 'ü "]}, [{" \\', "label": "ß", "n": -12345}, {"text": None, "label": "x"}]
    file = tmp_path / "rows.jsonl"
    file.write_text("\ufeff\n " + json.dumps(rows, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = write_jsonl(tmp_path / "lines.jsonl", rows)
    assert read(file, COLUMNS) == read(lines, COLUMNS)
    assert read(file, None) == read(lines, None)
    assert places(file, COLUMNS)[-1] == f"{file}, item 7"


def test_an_array_is_trained_on(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROWS))
    assert_same_examples(text_spec(file), text_spec(write_jsonl(tmp_path / "lines.jsonl", ROWS)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "a", "label": "b"}, 7]', ", item 2: must be a JSON object"),
        ('[{"text": "a", "label": "b"}, {"text": ', ", item 2: not JSON"),
        ('[{"text": "a", "label": "b"}', ", item 1: not JSON: the array does not end"),
        ('[{"text": "a", "label": "b"}\n', ": the JSON array is cut off or damaged after item 1"),
        ('[{"text": "a", "label": "b"} {"text"', ": the JSON array is cut off or damaged after item 1"),
        ('[{"text": "a", "label": "b"},]', ", item 2: not JSON"),
        ('[{"text": "a", "label": "b"}]\n[{"text": "c", "label": "d"}]\n', " has data after the end of its JSON array"),
        ("[", ", item 1: not JSON"),
        ("[" * 100_000, ", item 1: nested too deeply"),
        ("[]", " has no rows"),
    ],
)
def test_a_damaged_array_is_refused(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    with pytest.raises(DataError, match=re.escape(f"{file}{message}")):
        fit(text_spec(file))


def test_an_array_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'[{"text": "a", "label": "b"}, {"text": "\xff", "label": "c"}]')
    with pytest.raises(DataError, match=r"item 2: not UTF-8 text: byte 0xff"):
        read(file, COLUMNS)


def test_files_called_json(tmp_path: Path) -> None:
    array = tmp_path / "array/rows.json"
    lines = tmp_path / "lines/rows.json"
    for file in (array, lines):
        file.parent.mkdir()
    array.write_text(json.dumps(ROWS))
    write_jsonl(lines, ROWS)
    for source in (array, lines, array.parent, lines.parent):
        assert read(source, COLUMNS) == ROWS
    (lines.parent / "README.md").write_text("#")
    packed = lines.parent / "rows.json.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    with pytest.warns(Notice, match="left out README.md"):
        assert len(read(lines.parent, COLUMNS)) == 2 * len(ROWS)
    write_jsonl(lines.parent / "rows.jsonl", ROWS)
    with pytest.warns(Notice, match="left out README.md, rows.json, rows.json.gz"):
        assert read(lines.parent, COLUMNS) == ROWS
    array.write_text(json.dumps({"data": ROWS}, indent=1))
    with pytest.raises(
        DataError, match="has a JSON object that spans several lines: write one object per line, or one"
    ):
        read(array, COLUMNS)


def test_json_files_of_splits_are_not_all_trained_on(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.json").write_text(json.dumps(ROWS))
    dataset = text_spec(tmp_path).dataset
    assert dataset is not None
    with pytest.raises(DataError, match=r"holds test\.json and train\.json, which look like the splits"):
        with_split_folders(dataset, None)


def test_a_zipped_table(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "rows.csv", ROWS)
    archive = zipped(
        tmp_path / "rows.csv.zip", {"folder/rows.csv": table.read_bytes(), "__MACOSX/folder/._rows.csv": b"\0"}
    )
    assert read(archive, COLUMNS) == ROWS
    assert places(archive, COLUMNS)[0] == f"{archive}, row 1"
    lines = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    plain = zipped(tmp_path / "rows.zip", {"rows.jsonl": lines.read_bytes()})
    assert read(plain, COLUMNS, "jsonl") == ROWS
    with pytest.raises(
        DataError, match=r"rows\.zip: a ZIP archive can be read only if it contains one table: set `format`"
    ):
        read(plain, COLUMNS)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.csv": b"text,label\n", "b.csv": b"text,label\n"},
            "is a ZIP archive with 2 files (a.csv, b.csv); only archives of one table",
        ),
        ({"__MACOSX/._a.csv": b"x"}, "is a ZIP archive with no file"),
    ],
)
def test_an_archive_of_several_files_is_refused(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "rows.csv.zip", files)
    with pytest.raises(DataError, match=re.escape(f"{archive} {message}")):
        read(archive, COLUMNS)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "rows.csv.zip", {"rows.csv": write_csv(tmp_path / "rows.csv", ROWS).read_bytes()})
    content = archive.read_bytes()
    for damaged in (b"", content[:100], content[:60] + b"\0\0\0\0" + content[64:]):
        archive.write_bytes(damaged)
        with pytest.raises(DataError, match=re.escape(f"{archive} is not a valid CSV file")):
            read(archive, COLUMNS)


@pytest.mark.parametrize("sign", [";", ",", "\t", "|"])
@pytest.mark.parametrize("start", ["sep={}\n", '"sep={}"\r\n', "\ufeffsep={}\r\n", "SEP={}\n"])
def test_excels_line_names_the_separator(start: str, sign: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    content = "".join(f"{text}{sign}{label}\n" for text, label in [("text", "label"), *(row.values() for row in ROWS)])
    file.write_text(start.format(sign) + content, encoding="utf-8", newline="")
    assert read(file, COLUMNS) == ROWS
    assert read(file, None) == ROWS
    assert places(file, COLUMNS)[0] == f"{file}, row 1"


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


@pytest.mark.parametrize("ending", WRITERS)
def test_folders_are_columns(ending: str, tmp_path: Path) -> None:
    for name in ("a%2Fb", "law"):
        some = [{"text": row["text"], "id": "007"} for row in ROWS[:5]]
        WRITERS[ending](tmp_path / f"label={name}" / f"year=2025/part-0.{ending}", some)
    (tmp_path / "_SUCCESS").touch()
    found = read(tmp_path, ["label", "text", "year"])
    assert [row["label"] for row in found] == ["a/b"] * 5 + ["law"] * 5
    assert found[0] == {"label": "a/b", "text": ROWS[0]["text"], "year": "2025"}
    assert list(read(tmp_path, None)[0]) == ["text", "id", "label", "year"]
    assert fit(text_spec(tmp_path, validation={"uri": str(tmp_path)})).preprocessor.target.classes == ["a/b", "law"]
    [first, *_] = parts(Source(uri=str(tmp_path)), None)
    rows = next(predicted_tables.read(first, ["text"], refuse)).table
    assert rows["id"].to_pylist() == ["007"] * 5
    assert rows["label"].to_pylist() == ["a/b"] * 5


def test_a_folder_takes_the_place_of_a_column(tmp_path: Path) -> None:
    write_csv(tmp_path / "label=folder" / "rows.csv", [{"text": "a", "label": "file"}])
    assert read(tmp_path, COLUMNS) == [{"text": "a", "label": "folder"}]
    assert read(tmp_path, None) == [{"text": "a", "label": "folder"}]


def test_the_folder_of_missing_labels_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "label=__HIVE_DEFAULT_PARTITION__" / "part.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"text": ["a"]}), path)
    with pytest.raises(DataError, match=re.escape(f'{path}, row 1: the label (column "label") is empty')):
        fit(text_spec(tmp_path))
