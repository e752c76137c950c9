"""Values and syntax that JSON Lines may hold."""

from pathlib import Path

import pytest
from data_specs import places, read, write_jsonl

from trainjob.data.read.json_lines import JSONLinesFile
from trainjob.errors import DataError


def test_json_values_of_any_plain_type_are_text(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"x": value} for value in ("a", 1, 1.5, True, None)])
    path.write_text(path.read_text() + '{"x": "\\ud800"}\n{}\n')
    assert [row["x"] for row in read(path, ["x"])] == ["a", "1", "1.5", "true", None, "?", None]


def test_blank_lines_of_json_lines_count_as_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('\n{"x": "a"}\n\n  \n{"x": "b"}\n\n')
    assert read(path, ["x"]) == [{"x": "a"}, {"x": "b"}]
    assert places(path, ["x"]) == [f"{path}, line 2", f"{path}, line 5"]


@pytest.mark.parametrize("value", ['"text"', str(2**70)])
def test_json_values_that_make_no_column(value: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"x": 1}}\n{{"x": {value}}}\n')
    assert len(read(path, ["x"])) == 2
    with pytest.raises(
        DataError, match=r'"x" has values of several types, or numbers beyond 64 bits, between .*line 1'
    ):
        read(path, None)


def test_halves_of_json_surrogate_pairs_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x\\ud800": ["\\udfff"], "y": "\\ud83d\\ude80"}\n')
    assert read(path, None) == [{"x?": ["?"], "y": "\N{ROCKET}"}]
    assert JSONLinesFile(str(path), None, 0).names() == ["y"]


def test_json_objects_without_a_column_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{}\n{"x": 1}\n')
    assert read(path, None) == [{"x": None}, {"x": 1}]
    path.write_text("{}\n\n{}\n")
    with pytest.raises(DataError, match=r"line 1: the object is empty, as are all that follow up to .*line 3"):
        read(path, None)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
def test_a_byte_order_mark_is_no_row(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(content)
    assert read(tmp_path / "rows.jsonl", ["x"]) == []


def test_names_of_json_columns_are_those_of_all_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "b": 1}\n\n{"b": [], "c": null}\n')
    assert JSONLinesFile(str(path), None, 0).names() == ["a", "c"]


def test_two_values_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": "a", "y": {"x": 1}, "x": "b"}\n')
    with pytest.raises(DataError, match='line 1 has 2 values "x": rename all but one'):
        read(path, ["x"])
    path.write_text('{"x": "a", "y": {"x": 1, "x": 2}}\n')
    assert read(path, ["x"]) == [{"x": "a"}]
