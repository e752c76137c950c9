"""Rows that are read are counted, for the display."""

from pathlib import Path

from data_specs import some_rows, text_spec, write_csv

from trainjob.data import fit, prepare_examples
from trainjob.data.rows_read import ROWS_READ


def test_both_passes_count_their_rows(tmp_path: Path):
    spec = text_spec(write_csv(tmp_path / "rows.csv", some_rows(100)))
    ROWS_READ.begin()
    fitted = fit(spec)
    assert (ROWS_READ.done, ROWS_READ.total) == (100, None)
    ROWS_READ.begin(100)
    prepare_examples(spec, fitted)
    assert ROWS_READ.done == 200, "the training rows, and the validation rows among them"
