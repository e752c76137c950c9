"""Files that are made to run a program or to fill the memory, each small on disk."""

import gzip
import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from data_specs import idx_bytes, image_spec, read
from PIL import Image

from trainjob.data import fit
from trainjob.data.read import json_lines
from trainjob.data.read.image_files import MAX_PIXELS
from trainjob.data.read.pictures import FORMATS
from trainjob.errors import DataError

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(ran) print\n%%EOF\n"


def image_folder(folder: Path, content: bytes) -> Path:
    """Four sound images and one of this content, in two classes."""
    sound = io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(sound, "PNG")
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(sound.getvalue())
    (folder / "b" / "bad.png").write_bytes(content)
    return folder


def png(width: int, height: int) -> bytes:
    """A grey image without a pixel in it: its header alone decides how much memory is taken."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


def test_what_is_no_image_is_not_run_whatever_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"b/bad\.png is not a valid image file: its format is not supported"):
        fit(image_spec(image_folder(tmp_path / "images", EPS)))


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_one_of_pillows(ending: str) -> None:
    Image.init()
    assert ending in Image.OPEN


@pytest.mark.parametrize("size", [(8192, 8193), (9_500, 9_500), (14_000, 14_000), (2**31 - 1, 2**31 - 1)])
def test_a_small_file_of_many_pixels(size: tuple[int, int], tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "images", png(*size))
    with pytest.raises(DataError, match=rf"b/bad\.png: images of more than {MAX_PIXELS:,} pixels"):
        fit(image_spec(folder, size=(8, 8)))


def test_idx_files_of_many_pixels(tmp_path: Path) -> None:
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(2, np.uint8)))
    header = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 100_000, 100_000)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + bytes(99))
    with pytest.raises(DataError, match=r"idx3-ubyte: images of more than"):
        read(tmp_path / "train-images-idx3-ubyte", ["image", "label"])


@pytest.mark.parametrize("begin", [b'{"text": "x', b" "])
def test_a_line_of_json_that_fills_the_memory(begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a"}\n' + begin + begin[-1:] * (300 * 2**20), compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"rows\.jsonl\.gz, line 2 is longer than 8 MiB"):
            read(path, ["text"])
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


def test_long_lines_of_json_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "JSON_TABLE_BYTES", 1000)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "{"x" * 400}{number}"}}\n' for number in range(10)))
    parts = list(json_lines.JSONLinesFile(str(path), None, 0).read(["text"]))
    assert [len(rows.table) for rows in parts] == [3, 3, 3, 1]
    assert [rows.where(0).rpartition(" ")[2] for rows in parts] == ["1", "4", "7", "10"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_fields_of_csv_longer_than_pythons_reader_takes(quote: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"text,label\n{quote}{'x' * 200_000}{quote},a\n")
    assert read(path, ["text", "label"]) == [{"text": "x" * 200_000, "label": "a"}]
    path.write_text(f"{quote}{'x' * 200_000}{quote},label\nb,a\n")
    with pytest.raises(DataError, match=r"rows\.csv: the header cannot be read: field larger than"):
        read(path, ["text", "label"])
