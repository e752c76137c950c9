import bz2
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import places, random_images, read, write_csv, write_images, write_jsonl, write_mnist, write_parquet

from trainjob.api import Source
from trainjob.data.read import json_lines, tables
from trainjob.data.read.counted_reading import read_all
from trainjob.data.read.image_files import IDXFiles, ImageFiles
from trainjob.data.read.source import parts
from trainjob.data.read.tables import CSVFile, ParquetRows
from trainjob.errors import DataError, Notice

ROWS = [
    {"text": "plain", "label": "a", "other": "1"},
    {"text": 'a "quoted", line\nbreak', "label": "b", "other": "2"},
    {"text": "ünïcödé 漢字", "label": "a", "other": "3"},
    {"text": "", "label": "b", "other": "4"},
]
WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


@pytest.mark.parametrize("ending", WRITERS)
def test_tables(ending: str, tmp_path: Path) -> None:
    path = WRITERS[ending](tmp_path / f"rows.{ending}", ROWS)
    assert read(path, ["text", "label"]) == [{"text": row["text"], "label": row["label"]} for row in ROWS]
    unit = "line" if ending == "jsonl" else "row"
    assert places(path, ["text"]) == [f"{path}, {unit} {number}" for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("ending", WRITERS)
def test_all_columns_in_types_of_their_own(ending: str, tmp_path: Path) -> None:
    rows = [{"x": 1, "y": 0.5, "z": "a"}, {"x": 2, "y": 1.5, "z": "b"}]
    assert read(WRITERS[ending](tmp_path / f"rows.{ending}", rows), None) == rows


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
@pytest.mark.parametrize("table", ["csv", "jsonl"])
def test_compressed_text_tables(table: str, ending: str, compress: Any, tmp_path: Path) -> None:
    plain = WRITERS[table](tmp_path / f"rows.{table}", ROWS)
    packed = tmp_path / f"packed.{table}.{ending}"
    packed.write_bytes(compress(plain.read_bytes()))
    assert read(packed, ["text"]) == read(plain, ["text"])


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    for table in ("csv", "jsonl"):
        path = WRITERS[table](tmp_path / f"rows.{table}", ROWS)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert read(path, ["text"])[0] == {"text": "plain"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, 20, None]), ["1", "20", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([1.0, 2.5, None]), ["1", "2.5", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([b"a", b"b", None]), ["a", "b", None]),
        (pa.array(["a", "b", None], pa.large_string()), ["a", "b", None]),
        (pa.array([None, None, None]), [None, None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_parquet_columns_of_any_plain_type_are_text(values: pa.Array, expected: list[Any], tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": values}), tmp_path / "rows.parquet")
    assert [row["label"] for row in read(tmp_path / "rows.parquet", ["label"])] == expected


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, row in zip(("b/2.csv", "a.csv", "b/1.csv"), ROWS, strict=False):
        write_csv(tmp_path / name, [row])
    for name in ("_SUCCESS", ".hidden.csv", ".git/x.csv", "_log/0.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\nno\n")
    assert [row["other"] for row in read(tmp_path, ["other"])] == ["2", "3", "1"]


def test_what_of_a_folder_is_left_out_is_said(tmp_path: Path) -> None:
    for name in ("a.csv", "_b.csv", "notes.txt"):
        write_csv(tmp_path / name, ROWS)
    with pytest.warns(Notice, match=r"left out _b\.csv, notes\.txt$"):
        assert len(read(tmp_path, ["text"])) == 4
    images = write_images(tmp_path / "images", {"cat": random_images(2)})
    for number in range(7):
        (images / "cat" / f"{number}.txt").touch()
    with pytest.warns(Notice, match=r"left out cat/0\.txt, .*cat/4\.txt and 2 more$"):
        assert len(read(images, ["label"])) == 2


def test_every_image_of_a_folder_is_read(tmp_path: Path) -> None:
    for ending in ("png", "jfif", "avif", "JPG"):
        write_images(tmp_path / ending, {"_rare": random_images(1), "cat": random_images(1)}, ending)
        for file in (tmp_path / ending).glob("*/*"):
            file.rename(file.with_name(f"_{file.name}"))
        assert sorted(row["label"] for row in read(tmp_path / ending, ["label"])) == ["_rare", "cat"]
        assert all(row["image"] for row in read(tmp_path / ending, ["image", "label"]))


def test_images_that_would_be_lost_are_refused(tmp_path: Path) -> None:
    folder = write_images(tmp_path, {"cat": random_images(2)})
    (folder / "cat" / "gone.png").symlink_to("nowhere.png")
    with pytest.raises(DataError, match=r"broken links, .*: cat/gone\.png; fix or remove them"):
        read(folder, ["label"])
    (folder / "cat" / "gone.png").unlink()
    (folder / "cat" / "photo.heic").touch()
    with pytest.raises(DataError, match=r"images in an unsupported format: cat/photo\.heic; convert them"):
        read(folder, ["label"])


def test_a_glob_in_a_hidden_folder(tmp_path: Path) -> None:
    for name in (".cache/a.csv", "_data/b.csv", "_data/_c.csv", "_data/.d.csv", "x/_y/e.csv"):
        write_csv(tmp_path / name, ROWS[:1])
    for pattern, count in ((".cache/*.csv", 1), ("_data/*.csv", 1), ("_data/_*.csv", 1), ("*/_y/*.csv", 1)):
        assert len(read(tmp_path / pattern, ["text"])) == count, pattern


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_separators_between_the_columns(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f'"text"{delimiter}"label"\n"1,5"{delimiter}a\n')
    assert read(path, ["text", "label"]) == [{"text": "1,5", "label": "a"}]
    assert read(path, None) == [{"text": "1,5", "label": "a"}]


def test_a_header_without_a_line_break_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label")
    assert read(tmp_path / "rows.csv", ["text"]) == []


def test_blank_lines_before_a_header(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("\n\ntext,label\n\na,b\n")
    assert read(tmp_path / "rows.csv", ["text", "label"]) == [{"text": "a", "label": "b"}]
    assert CSVFile(str(tmp_path / "rows.csv"), None, 0).names() == ["text", "label"]


def test_columns_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label,,\na,b,c,d\n")
    assert read(path, ["text", "label"]) == [{"text": "a", "label": "b"}]
    with pytest.raises(DataError, match=r"rows\.csv has 2 columns without a name: give each one"):
        CSVFile(str(path), None, 0).names()


@pytest.mark.parametrize("columns", [None, ["text"]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_columns_of_one_name(ending: str, columns: list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        path.write_text("text,text,label\na,b,c\n")
    else:
        pq.write_table(pa.table([pa.array(["a"])] * 3, names=["text", "text", "label"]), path)
    with pytest.raises(DataError, match=rf'rows\.{ending} has 2 columns "text": rename all but one'):
        read(path, columns)


def test_globs(tmp_path: Path) -> None:
    for name, row in zip(("p-1.csv", "p-2.csv", "q-1.csv", "deep/er/p-3.csv"), ROWS, strict=True):
        write_csv(tmp_path / name, [row])

    def others(pattern: str) -> list[str]:
        return [row["other"] for row in read(tmp_path / pattern, ["other"])]

    assert others("p-*.csv") == ["1", "2"]
    assert others("[pq]-1.csv") == ["1", "3"]
    assert others("?-2.csv") == ["2"]
    assert others("**/*.csv") == ["4", "1", "2", "3"]
    assert others("d*/*/*.csv") == ["4"]


def test_a_name_that_looks_like_a_glob_is_a_name_first(tmp_path: Path) -> None:
    assert len(read(write_csv(tmp_path / "x[1].csv", ROWS), ["text"])) == 4


def test_a_format_given_outweighs_the_ending(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.txt", ROWS)
    assert len(read(path, ["text"], "jsonl")) == 4


def test_row_groups_are_parts_that_know_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [{"n": n, "pad": f"{n}" * 50} for n in range(100)], 10)
    monkeypatch.setattr(tables, "ROW_GROUPS_BYTES", 2000)
    found = parts(Source(uri=str(path)), None)
    assert 2 < len(found) < 10
    assert [row["n"] for row in read(path, ["n"])] == [str(n) for n in range(100)]
    assert places(path, ["n"]) == [f"{path}, row {n + 1}" for n in range(100)]
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("ending", WRITERS)
def test_big_files_come_piece_by_piece(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines if ending == "jsonl" else tables, "TABLE_ROWS", 100)
    monkeypatch.setattr(tables, "CSV_ROWS", 100)
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 2000)
    path = WRITERS[ending](tmp_path / f"rows.{ending}", [{"n": f"{n} " * 5} for n in range(1000)])
    pieces = list(read_all(parts(Source(uri=str(path)), None), ["n"]))
    assert max(len(piece.table) for piece in pieces) <= 130
    assert [row["n"].split()[0] for piece in pieces for row in piece.table.to_pylist()] == [str(n) for n in range(1000)]
    assert places(path, ["n"])[999].endswith(" 1000")


def test_image_folders(tmp_path: Path) -> None:
    write_images(tmp_path, {"cat": random_images(70), "dog": random_images(70, seed=1)})
    found = parts(Source(uri=f"{tmp_path}/"), None)
    assert [type(part) for part in found] == [ImageFiles] * 3
    rows = [row for batch in read_all(found, ["image", "label"]) for row in batch.table.to_pylist()]
    files = [Path(batch.where(i)) for batch in read_all(found, ["label"]) for i in range(len(batch.table))]
    assert sorted(files) == sorted(tmp_path.glob("*/*.png"))
    assert [row["image"] for row in rows] == [file.read_bytes() for file in files]
    assert [row["label"] for row in rows] == [file.parent.name for file in files]
    assert 20 < [row["label"] for row in rows[:70]].count("cat") < 50  # classes are mixed


def test_image_folders_named_as_hive_names_them(tmp_path: Path) -> None:
    write_images(tmp_path, {"label=cat": random_images(1, (2, 2)), "label=big%20dog": random_images(1, (2, 2))})
    tables = [rows.table for part in parts(Source(uri=str(tmp_path)), None) for rows in part.read(["label"])]
    assert sorted(label for table in tables for label in table["label"].to_pylist()) == ["big dog", "cat"]


def test_labels_of_images_are_read_without_the_images(tmp_path: Path) -> None:
    write_images(tmp_path, {"cat": random_images(3)})
    for file in tmp_path.glob("*/*.png"):
        file.unlink()
        file.mkdir()
    write_images(tmp_path, {"dog": random_images(1)})
    assert read(tmp_path, ["label"]) == [{"label": "dog"}]


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist(zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainjob.data.read.image_files.IDX_TABLE_BYTES", 300)
    images, labels = np.stack(random_images(25)), np.arange(25) % 3
    path = write_mnist(tmp_path, images, labels, zipped)
    for uri in (path, tmp_path):
        found = parts(Source(uri=str(uri)), None)
        assert [type(part) for part in found] == [IDXFiles]
        pieces = list(read_all(found, ["image", "label"]))
        assert [len(piece.table) for piece in pieces] == [10, 10, 5]
        assert [label for piece in pieces for label in piece.table["label"].to_pylist()] == [str(x) for x in labels]
        pixels = [piece.table["image"].combine_chunks().to_numpy_ndarray() for piece in pieces]
        assert np.array_equal(np.concatenate(pixels), images)
        assert pieces[1].where(2) == f"{path}, image 13"


def test_a_part_is_no_bigger_than_its_file(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "rows.parquet", ROWS)
    assert parts(Source(uri=str(path)), None) == [ParquetRows(str(path), None, path.stat().st_size)]
