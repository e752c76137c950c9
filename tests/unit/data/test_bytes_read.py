"""Reading is counted in bytes of the files, for a display that knows the end."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_specs import random_images, some_rows, text_spec, write_csv, write_images, write_jsonl, write_parquet

from trainjob.api import Source
from trainjob.data import fit, prepare_examples
from trainjob.data.read import json_lines, tables
from trainjob.data.read.chunking import group_parts
from trainjob.data.read.counted_reading import begin_reading, counted, read_all
from trainjob.data.read.source import parts
from trainjob.doing import DOING, Work

COLUMNS = ["text", "label"]


def seen_while_reading(path: Path, columns: list[str] | None) -> list[Work]:
    found = parts(Source(uri=str(path)), None)
    begin_reading([found])
    return [DOING.now for _ in read_all(found, columns)] + [DOING.now]


def compressed(compress: Callable[[bytes], bytes], plain: Path) -> Path:
    packed = plain.with_name(f"{plain.name}.{'gz' if compress is gzip.compress else 'bz2'}")
    packed.write_bytes(compress(plain.read_bytes()))
    return packed


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_tables_count_from_no_byte_to_the_last(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[ending]
    path = write(tmp_path / f"rows.{ending}", some_rows(400))
    for module in (json_lines, tables):
        monkeypatch.setattr(module, "TABLE_ROWS", 40)
    monkeypatch.setattr(tables, "CSV_ROWS", 40)
    monkeypatch.setattr(tables, "CSV_BLOCK_BYTES", path.stat().st_size // 4)
    seen = seen_while_reading(path, COLUMNS)
    size = path.stat().st_size
    assert {(work.name, work.total, work.unit) for work in seen} == {("reading", size, "bytes")}
    done = [work.done for work in seen]
    assert (done[0], done[-1]) == (0, size)
    assert done == sorted(done)
    assert len(seen) > 10
    even = np.linspace(0, size, len(seen))
    assert np.max(np.abs(np.array(done) - even)) < size / 4, "it moves evenly"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_of_compressed_tables_compressed_bytes_count(
    write: Callable[..., Path], compress: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tables, "CSV_ROWS", 4000)
    name = "rows.csv" if write is write_csv else "rows.jsonl"
    packed = compressed(compress, write(tmp_path / name, some_rows(10_000)))
    seen = seen_while_reading(packed, COLUMNS)
    assert [work.done for work in seen] == sorted(work.done for work in seen)
    assert seen[-1] == Work("reading", packed.stat().st_size, packed.stat().st_size, "bytes")
    assert len(seen) > 2


def test_images_count_by_the_files_that_are_read(tmp_path: Path):
    write_images(tmp_path, {"a": random_images(65), "b": random_images(65)})
    seen = seen_while_reading(tmp_path, None)
    assert seen[-1].done == seen[-1].total == sum(path.stat().st_size for path in tmp_path.rglob("*.png"))
    assert 0 < seen[1].done < seen[2].done < seen[-1].done


def test_rows_count_where_bytes_cannot(tmp_path: Path):
    import zipfile

    path = tmp_path / "rows.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.csv", write_csv(tmp_path / "rows.csv", some_rows(100)).read_bytes())
    assert seen_while_reading(path, COLUMNS)[-1] == Work("reading", 100, None, "rows")


def test_tasks_that_other_processes_do_count(tmp_path: Path):
    for number in range(3):
        write_csv(tmp_path / f"{number}.csv", some_rows(50))
    tasks = [[part] for part in parts(Source(uri=str(tmp_path)), None)]
    begin_reading(tasks)
    assert list(counted(iter("abc"), tasks)) == ["a", "b", "c"]
    assert DOING.now.done == DOING.now.total == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert len(group_parts([part for task in tasks for part in task])) == 1


def test_the_second_pass_counts_rows(tmp_path: Path):
    spec = text_spec(write_csv(tmp_path / "rows.csv", some_rows(100)))
    fitted = fit(spec)
    DOING.begin("preparing", 100, "rows")
    prepare_examples(spec, fitted)
    assert DOING.now.done == 100, "a source that is split is read once"
