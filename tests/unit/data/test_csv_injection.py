"""Texts that a spreadsheet takes for formulas."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from data_specs import read, write_csv
from hypothesis import given
from hypothesis import strategies as st

from trainjob.data.read.csv_injection import escaped, unescaped
from trainjob.data.read.tables import CSVFile

HOSTILE = ['=HYPERLINK("http://h","x")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]
HARMLESS = ["a=1", "-5", "+1.5e-3", "-.5", "007", "", "'quoted'", "it's", " =1", None]
COLUMNS = {"prediction": ["a"], "probability": [0.5], "probability_a": [0.5]}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_csv_injection_are_disarmed_and_other_texts_left_alone(kind: pa.DataType) -> None:
    written = escaped(pa.table({"x": pa.array(HOSTILE + HARMLESS, pa.string()).cast(kind)}))["x"].to_pylist()
    assert written == [f"'{text}" for text in HOSTILE] + HARMLESS


def test_numbers_stay_numbers() -> None:
    table = pa.table({"number": [-1.5, None], "whole": [-1, 2], "bytes": [b"=1", b"\xff=1"]})
    assert escaped(table).to_pydict() == table.to_pydict() | {"bytes": [b"'=1", b"\xff=1"]}


texts = st.text(st.sampled_from("'=+-@\t\r\n\uff1d1a "), max_size=6) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(texts | st.none(), min_size=1), texts)
def test_what_was_escaped_comes_back(values: list[str | None], name: str) -> None:
    table = pa.table([pa.array(values, pa.string())], [name])
    assert unescaped(escaped(table)).equals(table)


def test_predictions_are_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    table = pa.table({"=x": [HOSTILE[0]], "text": ["'=1"], **COLUMNS})
    pa_csv.write_csv(escaped(table), path)
    assert path.read_text().splitlines()[0].startswith('"\'=x",')
    assert read(path, ["text", "=x"]) == [{"text": "'=1", "=x": HOSTILE[0]}]
    assert read(path, None)[0]["=x"] == HOSTILE[0]
    assert CSVFile(str(path), None, 0).names()[:2] == ["=x", "text"]


def test_files_of_others_are_read_as_they_are(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", [{"text": "'=1", "prediction": "a"}])
    assert read(path, ["text"]) == [{"text": "'=1"}]
