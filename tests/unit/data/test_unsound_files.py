"""Files that are not what they should be, and URIs that lead nowhere, are named."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import idx_bytes, image_spec, random_images, read, write_images, write_parquet

from trainjob.data import fit
from trainjob.data.read import tables
from trainjob.errors import DataError


def _zstd(content: bytes) -> bytes:
    return pa.compress(content, "zstd", asbytes=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", b"", "rows.csv is empty: not even a header"),
        ("rows.csv", b"txt,label\nx,y\n", 'rows.csv has no column "text"; it has txt, label; did you mean txt\\?'),
        (
            "rows.csv",
            b"text,label\na,b\nc\n",
            "row 2: the row does not have 2 values, as the header has, but 1",
        ),
        (
            "rows.csv",
            b"text,label\na,b\n\xff\xfe,b\n",
            'row 2: column "text" is not UTF-8 text: byte 0xff at position 0',
        ),
        (
            "rows.csv",
            b'"text,label\na,b\n' * 50_000,
            "rows.csv: the header cannot be read.*look for a quote that is never",
        ),
        ("rows.csv", "sep=→\ntext→label\n".encode(), 'rows.csv names "→" as its separator, which must be an ASCII'),
        ("rows.csv", "text,label\n".encode("utf-16"), "rows.csv is UTF-16 text: save the file in UTF-8"),
        ("rows.csv", "text,label\n".encode("utf-16-le"), "rows.csv is UTF-16 text: save the file in UTF-8"),
        ("rows.jsonl", '{"text": "a"}\n'.encode("utf-16"), "rows.jsonl is UTF-16 text: save the file in UTF-8"),
        ("rows.jsonl", '{"text": "a"}\n'.encode("utf-16-be"), "rows.jsonl is UTF-16 text: save the file in UTF-8"),
        (
            "rows.csv",
            gzip.compress(b"text,label\na,b\n", mtime=0),
            "rows.csv is binary, not text: .* such as .csv.gz or",
        ),
        ("rows.jsonl", gzip.compress(b'{"text": "a"}\n', mtime=0), "rows.jsonl is binary, not text"),
        ("rows.csv", b"text\x1b[2J,label\nx,y\n", r'no column "text"; it has "text\\u001b\[2J", label; did you mean'),
        (
            "rows.csv",
            b"text, label\nx,y\n",
            'rows.csv has no column "label"; it has text, " label"; did you mean " label"',
        ),
        ("rows.jsonl", b'{"text": ' + b"[" * 9999 + b"]" * 9999 + b"}", "rows.jsonl, line 1: nested too deeply"),
        ("rows.jsonl", b'{"text": 1' + b"0" * 5000 + b"}", "rows.jsonl, line 1: not JSON: Exceeds the limit"),
        ("rows.csv.gz", b"no gzip at all", "rows.csv.gz is not a valid CSV file"),
        (
            "rows.csv.gz",
            gzip.compress(b"text,label\n" + b"a,b\n" * 9999, mtime=0)[:-20],
            "rows.csv.gz is not a valid CSV file",
        ),
        ("rows.csv.bz2", bz2.compress(b"text,label\n" + b"a,b\n" * 9999)[:-9], "rows.csv.bz2 is not a valid CSV file"),
        ("rows.jsonl.zst", _zstd(b'{"text": "a", "label": "b"}\n' * 9999)[:-9], "jsonl.zst is not a valid JSON Lines"),
        ("rows.jsonl", b'{"text": "a", "label": "b"}\n{"text": \n', "rows.jsonl, line 2: not JSON"),
        ("rows.jsonl", b'{"text": "a", "label": "b"}\n[1]\n', "rows.jsonl, line 2: must be a JSON object"),
        (
            "rows.jsonl",
            b'{"text": "\xff", "label": "b"}\n',
            "rows.jsonl, line 1: not UTF-8 text: byte 0xff at position 10",
        ),
        ("rows.jsonl", b'{"text": ["a"], "label": "b"}\n', 'rows.jsonl, line 1: "text" contains list, not text'),
        ("rows.jsonl", b'{"label": "b"}\n', 'rows.jsonl has no column "text"; it has label'),
        ("rows.parquet", b"PAR1 not really", "rows.parquet is not a valid Parquet file"),
        ("rows.parquet", b"", "rows.parquet is not a valid Parquet file"),
        ("train-images-idx3-ubyte", idx_bytes(np.zeros((2, 3, 3), np.uint8))[:-1], "images-idx3-ubyte ends too early"),
        ("train-images-idx3-ubyte", idx_bytes(np.zeros((3, 3, 3), np.uint8)), "3 images but .* has 2 labels"),
        (
            "train-images-idx3-ubyte",
            idx_bytes(np.zeros((2, 3, 3), np.uint8)) + b"x",
            "idx3-ubyte has data after the last",
        ),
        (
            "train-images-idx3-ubyte",
            idx_bytes(np.zeros((2, 0, 3), np.uint8)),
            "idx3-ubyte has images of 0 x 3 pixels",
        ),
        ("train-images-idx3-ubyte", idx_bytes(np.zeros((2, 3, 3, 5), np.uint8)), "has images of 3 x 3 x 5 pixels"),
        (
            "train-images-idx3-ubyte",
            bytes([0, 0, 8, 3, 0, 0, 0, 2]) + bytes([0, 0, 32, 0]) * 2 + bytes(99),
            "images-idx3-ubyte ends too early",
        ),
        ("train-images-idx3-ubyte", b"\x00\x00\x0d\x03rest", "is not an IDX file .*: it begins with 00 00 0d 03"),
        ("train-images-idx3-ubyte.gz", b"no gzip", "images-idx3-ubyte.gz is not a valid IDX file"),
    ],
)
def test_files_that_are_not_sound(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    for ending in ("", ".gz"):
        labels = idx_bytes(np.zeros(2, np.uint8))
        (tmp_path / f"train-labels-idx1-ubyte{ending}").write_bytes(gzip.compress(labels) if ending else labels)
    columns = ["image", "label"] if "idx3" in name else ["text", "label"]
    with pytest.raises(DataError, match=message):
        read(tmp_path / name, columns)


def test_a_quote_that_is_never_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", 1000)
    (tmp_path / "rows.csv").write_bytes(b'text,label\na,b\n"c,d\n' + b"e,f\n" * 1000)
    with pytest.raises(DataError, match=r"rows\.csv has a row longer than .*: look for a quote that is never closed"):
        read(tmp_path / "rows.csv", ["text", "label"])


def test_damaged_pages_of_a_parquet_file(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [{"text": f"{n * 7919}"} for n in range(20_000)])
    data = bytearray(path.read_bytes())
    data[2000:4000] = bytes(byte ^ 0xFF for byte in data[2000:4000])
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"rows\.parquet is not a valid Parquet file"):
        read(path, ["text"])


def test_undecodable_text_in_parquet(tmp_path: Path) -> None:
    values = pa.array([b"fine", b"so far \xe9t\xe9"])
    pq.write_table(pa.table({"text": values.view(pa.string())}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r'row 2: column "text" is not UTF-8 text: byte 0xe9 at position 7'):
        read(tmp_path / "rows.parquet", ["text"])


def test_nested_columns_are_no_text(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [{"text": ["a", "b"]}])
    with pytest.raises(DataError, match=r'row 1: column "text" contains list<.*, not text'):
        read(path, ["text"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([[1, 2]], pa.list_(pa.uint8(), 2)), r"contains fixed_size_list<.*, not text"),
        (
            pa.array([0], pa.timestamp("s", "Nowhere/None")),
            r"contains timestamp\[.*Nowhere/None\], which cannot be converted to text",
        ),
    ],
    ids=["tensor", "time zone"],
)
def test_other_columns_that_are_no_text(values: pa.Array, message: str, tmp_path: Path) -> None:
    if pa.types.is_fixed_size_list(values.type):
        values = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.uint8(), (2,)), values)
    pq.write_table(pa.table({"text": values}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=rf'rows\.parquet, row 1: column "text" {message}'):
        read(tmp_path / "rows.parquet", ["text"])


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("absent.csv", "absent.csv: there is nothing here"),
        ("absent/", "absent/: there is nothing here"),
        ("*.parquet", r"\*.parquet: no file matches"),
        ("empty", "empty: the folder has no files"),
        ("notes.txt", "notes.txt: cannot tell the format from the name"),
        ("mixed", r"mixed has files in several formats \(csv, jsonl\): choose one .*'.*mixed/\*\.\w+'$"),
        ("loose", r"loose/x.png is not in a class folder: images belong in .*loose/<class>/"),
        ("loose/x.png", "must be a folder with a folder of images for each class"),
        ("two", "two: name one IDX file of images.*t10k-images-idx3-ubyte, train-images-idx3-ubyte"),
        ("two/t10k-labels-idx1-ubyte", "name one IDX file of images"),
        ("alone/train-images-idx3-ubyte", "train-labels-idx1-ubyte: there is nothing here"),
    ],
)
def test_uris_that_lead_nowhere(uri: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in (
        "notes.txt",
        "mixed/a.csv",
        "mixed/b.jsonl",
        "loose/x.png",
        "loose/cat/y.png",
        "two/train-images-idx3-ubyte",
        "two/t10k-images-idx3-ubyte",
        "two/t10k-labels-idx1-ubyte",
        "alone/train-images-idx3-ubyte",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=message):
        read(f"{tmp_path}/{uri}", None)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 12345\n"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "a.csv.zip", "images-idx3-ubyte"])
def test_a_git_lfs_pointer_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(
        DataError, match=rf"{name} is a Git LFS pointer, not the file .*: fetch the files with `git lfs"
    ):
        read(tmp_path / name, ["text", "label"])


def test_git_lfs_pointers_among_files_are_counted(tmp_path: Path) -> None:
    for name in "abc":
        write_parquet(tmp_path / f"{name}.parquet", [{"text": name}])
    for name in "bc":
        (tmp_path / f"{name}.parquet").write_bytes(POINTER)
    with pytest.raises(DataError, match=r"b\.parquet is a Git LFS pointer, .*, and so is one more: fetch"):
        read(tmp_path, ["text"])


def test_git_lfs_pointers_in_the_place_of_images(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", {"a": random_images(6, (4, 4, 3)), "b": random_images(6, (4, 4, 3), 1)})
    for name in ("a/1.png", "b/2.png"):
        (folder / name).write_bytes(POINTER)
    with pytest.raises(DataError, match=r"2 rows: a Git LFS pointer, not the file itself; fetch the files"):
        fit(image_spec(folder))
