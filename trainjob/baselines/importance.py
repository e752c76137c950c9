"""Permutation importance: how much worse a model's main score becomes when one column of a table is shuffled."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from trainjob.baselines.rows import Sampled, drawn
from trainjob.data import Preprocessor
from trainjob.data.batches.examples import Examples
from trainjob.data.read.csv_injection import PREDICTION
from trainjob.doing import DOING
from trainjob.evaluation.estimates import Estimate, Judge
from trainjob.kinds.input import SeparateColumns, separate_columns
from trainjob.runs.comparison import ColumnImportance, Importance
from trainjob.runs.files import MODEL
from trainjob.runs.model import local_copy
from trainjob.storage import Folder

REPEATS = 5
MAX_ROWS, MIN_ROWS = 1000, 50
MAX_WORK, WORK_OF_ROW = 5_000_000, 50
"""The most work of all passes, about 30 seconds of one core; the work of a row, in addition to the number of its
values."""
MAX_SECONDS = 120
"""The most time of all passes, which encoders of texts would exceed."""
BATCH = 256

Predict = Callable[[Examples], np.ndarray]
"""Returns predictions [n, ...], in the form of labels, for prepared rows."""


def importance_of_columns(run: Folder, preprocessor: Preprocessor, held: Sampled) -> Importance | None:
    """The importance of each column to the run's model, on a sample of held-out rows. None for an input without
    separate columns. An error is part of the result, because the training has succeeded."""
    table = separate_columns(preprocessor.input)
    if table is None:
        return None
    passes = REPEATS * len(table.columns)
    values_of_row = preprocessor.input.row_bytes // np.float32().itemsize
    most = min(MAX_ROWS, MAX_WORK // (passes * (WORK_OF_ROW + values_of_row)))
    if most < MIN_ROWS:
        return _takes_too_long(table)
    chosen = drawn(len(held.rows), most, seed=0)
    try:
        assert isinstance(held.values, pa.Table)
        predict, rows = _predictions_of(run, preprocessor), table.prepared(held.values.take(pa.array(chosen)))
        if (most := int(MAX_SECONDS / (passes * _seconds_of_row(predict, rows)))) < MIN_ROWS:
            return _takes_too_long(table)
        some = drawn(len(rows), most, seed=0)
        rows, labels = rows.take(some), held.labels[chosen[some]]
        found = drops(predict, rows, labels, table, orders(len(rows)), preprocessor.target.judge)
        importances = [ColumnImportance(column=name, drop=drop) for name, drop in found]
    except Exception as error:
        return Importance(rows=len(chosen), repeats=REPEATS, error=str(error) or type(error).__name__)
    return Importance(rows=len(rows), repeats=REPEATS, columns=sorted(importances, key=lambda each: -each.drop.value))


def _seconds_of_row(predict: Predict, rows: Examples) -> float:
    some = rows.take(np.arange(min(len(rows), MIN_ROWS)))
    predict(some)  # the first pass takes longer
    since = time.perf_counter()
    predict(some)
    return (time.perf_counter() - since) / len(some)


def _takes_too_long(table: SeparateColumns) -> Importance:
    return Importance(rows=0, repeats=REPEATS, error=f"it takes too long for {len(table.columns):,} columns")


def orders(rows: int) -> np.ndarray:
    """A random order of the rows for each repeat, int64 [REPEATS, n]; the same in every run."""
    random = np.random.default_rng(0)
    return np.stack([random.permutation(rows) for _ in range(REPEATS)])


def drops(
    predict: Predict, rows: Examples, labels: np.ndarray, table: SeparateColumns, orders: np.ndarray, judge: Judge
) -> Iterator[tuple[str, Estimate]]:
    """How much worse the main score becomes when the values of each of the columns are put in other orders, int64
    [repeats, n]: the mean of the repeats."""
    intact = predict(rows)
    DOING.begin("importance of the columns", len(table.columns))
    for number, name in enumerate(table.columns, start=1):
        leads = list[Estimate]()
        for order in orders:
            leads.append(judge.lead(labels, intact, predict(table.shuffled(rows, name, order))).main)
        value, low, high = np.mean([(lead.value, lead.low, lead.high) for lead in leads], axis=0).tolist()
        yield name, Estimate(value=value, low=low, high=high)
        DOING.reach(number)


def _predictions_of(run: Folder, preprocessor: Preprocessor) -> Predict:
    """The predictions of a run's model."""
    import torch

    from trainjob.models import load_model

    with local_copy(run / MODEL) as folder:
        model, _ = load_model(folder, only_to_answer=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device).eval()
    target = preprocessor.target

    @torch.inference_mode()
    def predict(rows: Examples) -> np.ndarray:
        outputs = list[torch.Tensor]()
        for start in range(0, len(rows), BATCH):
            inputs = preprocessor.input.batch(rows.take(np.arange(start, min(start + BATCH, len(rows)))))
            outputs.append(model(**{name: torch.from_numpy(each).to(device) for name, each in inputs.items()}).cpu())
        answers = target.answer(torch.cat(outputs), model)
        assert answers is not None
        return target.judge.values(answers[PREDICTION])

    return predict
