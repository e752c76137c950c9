"""A saved model applied to new rows. No Ray."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from trainjob.data import Preprocessor
from trainjob.data.batches.examples import Examples, batches_by_length
from trainjob.data.read.csv_injection import OF_CLASS, PREDICTION
from trainjob.data.read.rows import row_number
from trainjob.errors import UserError
from trainjob.kinds import KINDS
from trainjob.kinds.input import tell_unknown_categories, unknown_categories
from trainjob.kinds.inputs.python_rows import as_arrow_table
from trainjob.models import load_model
from trainjob.runs.model import local_copy, model_folder
from trainjob.storage import Folder

WINDOW_ROWS = 4096
WINDOW_BYTES = 256 * 2**20
"""The most rows, and about the most bytes, that are prepared and sorted by length at a time."""

_Sliceable = Sequence[Any] | np.ndarray | pa.Table
RowsLike = _Sliceable | Iterable[Any]
"""Texts, mappings from column to value, or a table with the run's text columns: lists, iterators, and columns or
tables of pyarrow, pandas or whatever else speaks Arrow. For images: paths or URIs, PIL images, uint8 arrays [H, W] or
[H, W, channels], or one array of them."""


class Predictor:
    """A trained model that answers each row, on the GPU if there is one.

    >>> predictor = Predictor.load("runs/docstrings")
    >>> predictor.predict(["Returns the next token.", "Plots a histogram."])
    """

    def __init__(self, model: nn.Module, preprocessor: Preprocessor) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device).eval()
        self.preprocessor = replace(preprocessor, input=preprocessor.input.alone())

    @classmethod
    def load(cls, uri: str | PathLike[str], endpoint: str | None = None, variant: str | None = None) -> Self:
        """The best model of a run's folder or, with `variant`, a smaller one made of it; or the one in a model's, a
        variant's or a checkpoint's folder.

        `uri` is a path, s3:// or gs://; `endpoint` an S3 server other than Amazon's (default: AWS_ENDPOINT_URL).
        Raises UserError where there is no model, StorageError where the folder cannot be read.
        """
        with local_copy(model_folder(Folder(str(uri), endpoint), variant)) as folder:
            return cls(*load_model(folder, only_to_answer=True))

    @property
    def classes(self) -> list[str]:
        """Class names in the order of the probabilities; empty for a model that predicts no classes."""
        return self.preprocessor.target.classes

    def predict(self, rows: RowsLike, batch_size: int = 64) -> list[Any]:
        """The prediction for each row: of a classifier, the most probable class; of a regressor, a number, or a dict of
        them by column."""
        return self.answers(rows, batch_size)[PREDICTION].to_pylist()

    def answers(
        self,
        rows: RowsLike,
        batch_size: int = 64,
        where: Callable[[int], str] = row_number,
        unknown: Counter[str] | None = None,
    ) -> pa.Table:
        """The answer to each row, in the columns that `trainjob predict` writes, several numbers as
        one object; `where` names a row in errors. Gives a Notice of cells whose category the model has not learned, or
        counts them in `unknown`, by column."""
        counted = Counter[str]() if unknown is None else unknown
        answers = self.preprocessor.target.answer(self.outputs(rows, batch_size, where, counted), self.model)
        assert answers is not None, "load_model has refused a model without answers"
        if unknown is None:
            tell_unknown_categories(counted, len(answers))
        return answers

    def predict_proba(self, rows: RowsLike, batch_size: int = 64) -> np.ndarray:
        """The probability of each class for each row, float32 [n, C]; after a binary cross-entropy loss they are
        those of C independent decisions and need not sum to 1. Raises UserError for a model without classes."""
        if not self.classes:
            raise UserError(
                f"{KINDS[self.preprocessor.kind].a_noun} predicts no classes, so there are no probabilities"
            )
        return probabilities_of(self.answers(rows, batch_size), self.classes)

    def outputs(
        self,
        rows: RowsLike,
        batch_size: int = 64,
        where: Callable[[int], str] = row_number,
        unknown: Counter[str] | None = None,
    ) -> torch.Tensor:
        """The network's outputs for each row, such as logits, float32 [n, width of the target] on the CPU; float64 of
        trees. `where` names a row in errors; `unknown` counts the cells whose category the model has not learned, by
        column.

        Raises UserError for rows that do not fit the model, and names the row that cannot be read.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1, got {batch_size}")
        table = _sliceable(rows)
        window = max(batch_size, min(WINDOW_ROWS, WINDOW_BYTES // self.preprocessor.input.row_bytes))
        parts = [
            self._window(
                table[start : start + window], batch_size, lambda index, start=start: where(start + index), unknown
            )
            for start in range(0, len(table), window)
        ]
        return _joined(parts) if parts else torch.empty(0, self.preprocessor.target.width)

    @torch.inference_mode()
    def _window(
        self, rows: _Sliceable, batch_size: int, where: Callable[[int], str], unknown: Counter[str] | None
    ) -> torch.Tensor:
        """Batches of rows of like length, so that little of them is padding."""
        table = self._table(rows, where)
        values = self.preprocessor.input.transform(table, where)
        if unknown is not None:
            unknown.update(unknown_categories(self.preprocessor.input, table, where))
        examples = Examples.from_table(pa.table({"values": values}))
        batches, outputs = batches_by_length(examples.lengths, batch_size), list[torch.Tensor]()
        for batch in batches:
            inputs = self.preprocessor.input.batch(examples.take(batch))
            tensors = {name: torch.from_numpy(array).to(self.device) for name, array in inputs.items()}
            outputs.append(self.model(**tensors).cpu())
        return _joined(outputs)[torch.from_numpy(np.argsort(np.concatenate(batches)))]

    def _table(self, rows: _Sliceable, where: Callable[[int], str]) -> pa.Table:
        if isinstance(rows, pa.Table):
            return rows
        return self.preprocessor.input.table(rows, where)


def _joined(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Outputs [n, ...] of several batches, those of tokens, [n, length, ...], padded with zeros to one length."""
    if outputs[0].dim() < 3:
        return torch.cat(list(outputs))
    length = max(each.shape[1] for each in outputs)
    return torch.cat([nn.functional.pad(each, (0, 0, 0, length - each.shape[1])) for each in outputs])


def probabilities_of(answers: pa.Table, classes: Sequence[str]) -> np.ndarray:
    """The probability of each class, float32 [n, C], in the answers of a classifier."""
    return np.stack([answers[f"{OF_CLASS}{name}"].to_numpy() for name in classes], axis=1)


def _sliceable(rows: Any) -> _Sliceable:
    """The rows as something that has a length and slices."""
    if isinstance(rows, (str, bytes, Mapping)):
        raise UserError(f"expected a list of rows, not one {type(rows).__name__}: put it in a list")
    if isinstance(rows, pa.Table | Sequence):
        return rows
    if isinstance(rows, np.ndarray) and rows.ndim > 0:
        return rows
    for to_list in ("to_pylist", "to_list"):  # a column of pyarrow, pandas or polars
        if hasattr(rows, to_list) and not hasattr(rows, "columns"):
            return getattr(rows, to_list)()
    if hasattr(rows, "__arrow_c_stream__"):
        return as_arrow_table(lambda: pa.table(rows))
    if isinstance(rows, Iterator):
        return list(rows)
    raise UserError(f"expected a list of rows or a table, not {type(rows).__name__}")
