"""Adds to the model's predictions where each row comes from, what its text is, and thumbnails of the worst mistakes."""

from collections import defaultdict
from typing import Any

import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.batches.prepare import read_set
from trainjob.errors import DataError
from trainjob.evaluation.mistakes import confident_mistakes
from trainjob.redaction import without_secrets
from trainjob.runs.files import MODEL
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.storage import Folder


def add_sources(spec: TrainJobSpec, run: Folder, fitted: Fitted) -> None:
    """Adds the columns `file`, `file_row` (null where the file is the row) and, for texts, `text`, for images
    `thumbnail` (null but for the mistakes that the report shows) to the model's predictions, for which the held-out
    rows are read once more.

    Raises DataError where they have changed, StorageError where they cannot be reached.
    """
    assert spec.dataset is not None
    stored = read_predictions(run, MODEL)
    shown = confident_mistakes(stored)
    files: list[str] = []
    numbers: list[int | None] = []
    excerpts = defaultdict[str, list[pa.Array]](list)
    for rows, _ in read_set(spec, fitted, spec.dataset.held_out_set):
        first = len(files)
        places = [rows.where(index) for index in range(len(rows.table))]
        files += [without_secrets(place.file) for place in places]
        numbers += [place.number for place in places]
        here = shown[(shown >= first) & (shown < first + len(places))] - first
        for name, values in fitted.preprocessor.input.excerpts(rows, here).items():
            excerpts[name].append(values)
    if len(files) != len(stored):
        raise DataError(f"{run.uri}: the rows that the model was scored on have changed since: train it anew")
    columns: dict[str, Any] = {"file": pa.array(files, pa.string()), "file_row": pa.array(numbers, pa.int64())}
    for name, column in (columns | {name: pa.chunked_array(arrays) for name, arrays in excerpts.items()}).items():
        stored = stored.append_column(name, column)
    write_predictions(run, MODEL, stored)
