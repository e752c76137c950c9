"""Reads the predictions of a run's model for its held-out rows."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trainjob.errors import listed
from trainjob.evaluation import Scores
from trainjob.evaluation.paired import ClassJudge
from trainjob.runs.contents import Contents
from trainjob.runs.files import MODEL, PREDICTIONS, VALIDATED
from trainjob.runs.predictions import read_predictions
from trainjob.runs.refusals import damaged
from trainjob.storage import Folder

PROBABILITIES = ("classes", "probabilities")
"""The columns that are read if there are two classes."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the rows of a set."""

    set_name: str
    scores: Scores
    """The scores of the set."""
    table: pa.Table
    """The columns that such scores always keep, and those of PROBABILITIES that the file has."""

    @property
    def classes(self) -> list[str]:
        return self.scores.classes

    @property
    def labels(self) -> np.ndarray:
        """Classes int64 [n]."""
        return ClassJudge(self.classes).values(self.table["label"])

    @property
    def predicted(self) -> np.ndarray:
        """Classes int64 [n]."""
        return ClassJudge(self.classes).values(self.table["prediction"])

    @property
    def probability(self) -> np.ndarray:
        """The probability of each prediction, float64 [n]."""
        return self.table["probability"].to_numpy().astype(np.float64)

    def probability_of(self, name: str) -> np.ndarray | None:
        """The probability of one class, float64 [n]; None unless it is kept for every row."""
        if not set(PROBABILITIES) <= set(self.table.column_names):
            return None
        names, values = (self.table[column].combine_chunks().flatten() for column in PROBABILITIES)
        found = values.to_numpy()[names.to_numpy(zero_copy_only=False) == name].astype(np.float64)
        return found if len(found) == len(self.table) else None


def read_held_out(run: Contents, folder: Folder) -> HeldOut | None:
    """The predictions for the test set or, without one, for the validation set. None for a run that has not finished or
    keeps no predictions. Raises UserError if the file is damaged."""
    return _read(run, folder, "test" if "test" in run.evaluation else "validation", MODEL)


def read_validated(run: Contents, folder: Folder) -> HeldOut | None:
    """The predictions for the validation set; kept for two classes. Raises UserError if the file is damaged."""
    return _read(run, folder, "validation", VALIDATED if "test" in run.evaluation else MODEL)


def _read(run: Contents, folder: Folder, set_name: str, file: str) -> HeldOut | None:
    scores, path = run.evaluation.get(set_name), f"{PREDICTIONS}/{file}.parquet"
    if run.summary is None or scores is None or not folder.exists(path):
        return None
    with _refuse_damaged(folder, path):
        more = PROBABILITIES if len(scores.classes) == 2 else ()
        table = read_predictions(folder, file, [*scores.stored_columns, *more])
    if missing := [column for column in scores.stored_columns if column not in table.column_names]:
        raise damaged(folder, path, f"it has no {listed(missing)}")
    return HeldOut(set_name, scores, table)


def read_whole_rows(folder: Folder, rows: np.ndarray) -> pa.Table:
    """All columns of the rows with these numbers, int64 [m], of the file that `read_held_out` reads, in its order.
    Raises UserError if the file is damaged."""
    with _refuse_damaged(folder, f"{PREDICTIONS}/{MODEL}.parquet"):
        return read_predictions(folder, MODEL, rows=rows)


@contextmanager
def _refuse_damaged(folder: Folder, path: str) -> Generator[None]:
    """Raises UserError for Arrow's errors about a damaged file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise damaged(folder, path, error) from error
