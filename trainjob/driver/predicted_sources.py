"""Adds the source of each row, its text, and thumbnails of the worst mistakes to the model's predictions."""

from collections import defaultdict
from typing import Any

import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.batches.prepare import read_set
from trainjob.errors import DataError
from trainjob.evaluation import scores_type
from trainjob.redaction import without_secrets
from trainjob.runs.files import MODEL
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.storage import Folder


def add_sources(spec: TrainJobSpec, run: Folder, fitted: Fitted) -> None:
    """Adds columns to the model's predictions: `file`, `file_row` (null if the file is the row), for texts `text`, and
    for images `thumbnail` (null except for the mistakes that the report shows). Reads the held-out rows again.

    Raises DataError if these rows have changed, and StorageError if they cannot be reached.
    """
    assert spec.dataset is not None
    stored, set_name = read_predictions(run, MODEL), spec.dataset.held_out_set
    shown = scores_type(spec.model.facts, stored).worst(stored, set_name).indices
    files: list[str] = []
    numbers: list[int | None] = []
    excerpts = defaultdict[str, list[pa.Array]](list)
    for rows, _ in read_set(spec, fitted, set_name):
        first = len(files)
        locations = [rows.where(index) for index in range(len(rows.table))]
        files += [without_secrets(location.file) for location in locations]
        numbers += [location.number for location in locations]
        here = shown[(shown >= first) & (shown < first + len(locations))] - first
        for name, values in fitted.preprocessor.input.excerpts(rows, here).items():
            excerpts[name].append(values)
    if len(files) != len(stored):
        raise DataError(f"{run.uri}: the rows that the model was scored on have changed since: train it again")
    columns: dict[str, Any] = {"file": pa.array(files, pa.string()), "file_row": pa.array(numbers, pa.int64())}
    for name, column in (columns | {name: pa.chunked_array(arrays) for name, arrays in excerpts.items()}).items():
        stored = stored.append_column(name, column)
    write_predictions(run, MODEL, stored)
