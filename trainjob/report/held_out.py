"""What a run's classifier predicts for the rows that it is judged by, read for the report's sections."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trainjob.errors import UserError
from trainjob.evaluation import Scores
from trainjob.runs.contents import Contents
from trainjob.runs.files import MODEL, PREDICTIONS
from trainjob.runs.predictions import indices, read_predictions
from trainjob.storage import Folder

COLUMNS = ("row", "label", "prediction", "probability")


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the rows of the test set or, without one, of the validation part."""

    set_name: str
    classes: list[str]
    table: pa.Table
    """COLUMNS, which the files of all versions have."""

    @property
    def labels(self) -> np.ndarray:
        """Classes int64 [n]."""
        return indices(self.table["label"], self.classes)

    @property
    def predicted(self) -> np.ndarray:
        """Classes int64 [n]."""
        return indices(self.table["prediction"], self.classes)

    @property
    def probability(self) -> np.ndarray:
        """Of the predictions, float64 [n]."""
        return self.table["probability"].to_numpy().astype(np.float64)


def read_held_out(run: Contents, folder: Folder) -> HeldOut | None:
    """None for a run that has not finished or has no classifier. Raises UserError where the file is damaged."""
    set_name = "test" if "test" in run.evaluation else "validation"
    scores = run.evaluation.get(set_name)
    name = f"{PREDICTIONS}/{MODEL}.parquet"
    if run.summary is None or not isinstance(scores, Scores) or not folder.exists(name):
        return None
    try:
        table = read_predictions(folder, MODEL, COLUMNS)
    except pa.ArrowException as error:
        raise UserError(f"{run.uri}/{name} is damaged or of another version of trainjob: {error}") from error
    return HeldOut(set_name, [each.name for each in scores.per_class], table)
