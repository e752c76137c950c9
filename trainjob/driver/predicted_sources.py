"""Adds to the model's predictions where each row comes from, what its text is, and thumbnails of the worst mistakes."""

import numpy as np
import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.pictures import pictures
from trainjob.data.prepare import read_set
from trainjob.data.rows import Rows
from trainjob.data.thumbnails import thumbnail
from trainjob.errors import DataError
from trainjob.evaluation.mistakes import confident_mistakes
from trainjob.kinds.inputs.image import ImagePreprocessor
from trainjob.kinds.inputs.text import TextPreprocessor, joined_texts
from trainjob.redaction import without_secrets
from trainjob.runs.files import MODEL
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.storage import Folder

MOST_CHARACTERS = 1000
"""Of a text that is kept beside its prediction."""


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
    texts: list[str] = []
    thumbnails: list[bytes | None] = []
    preprocessor = fitted.preprocessor
    for rows, _ in read_set(spec, fitted, "validation" if spec.dataset.test is None else "test"):
        first = len(files)
        places = [rows.where(index) for index in range(len(rows.table))]
        files += [without_secrets(place.file) for place in places]
        numbers += [place.number for place in places]
        if isinstance(preprocessor, TextPreprocessor):
            texts += [text[:MOST_CHARACTERS] for text in joined_texts(rows.table, preprocessor.columns, rows.where)]
        if isinstance(preprocessor, ImagePreprocessor):
            here = shown[(shown >= first) & (shown < first + len(rows.table))] - first
            thumbnails += _thumbnails(rows, here, preprocessor.as_shown)
    if len(files) != len(stored):
        raise DataError(f"{run.uri}: the rows that the model was scored on have changed since: train it anew")
    columns = {"file": pa.array(files, pa.string()), "file_row": pa.array(numbers, pa.int64())}
    if isinstance(preprocessor, TextPreprocessor):
        columns["text"] = pa.array(texts, pa.string())
    if isinstance(preprocessor, ImagePreprocessor):
        columns["thumbnail"] = pa.array(thumbnails, pa.binary())
    for name, column in columns.items():
        stored = stored.append_column(name, column)
    write_predictions(run, MODEL, stored)


def _thumbnails(rows: Rows, chosen: np.ndarray, as_shown: bool) -> list[bytes | None]:
    """A thumbnail of each chosen row, None of the others."""
    thumbnails: list[bytes | None] = [None] * len(rows.table)
    if len(chosen):
        some = rows.take(chosen)
        for index, picture in zip(chosen.tolist(), pictures(some.table, some.where, as_shown), strict=True):
            thumbnails[index] = thumbnail(picture)
    return thumbnails
