"""Computes the baselines of a run that has been trained, and compares the model with them."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from trainjob.api import TrainJob
from trainjob.baselines.cascade import curve
from trainjob.baselines.cheap import HeldOutPredictions, predict_held_out
from trainjob.baselines.importance import importance_of_columns
from trainjob.baselines.rows import Sampled, sample
from trainjob.data import Fitted
from trainjob.data.read.csv_injection import PROBABILITY
from trainjob.doing import DOING
from trainjob.errors import DataError, UserError
from trainjob.kinds.target import Target
from trainjob.runs.comparison import Baseline, Comparison, write_comparison
from trainjob.runs.files import FITTED, MODEL
from trainjob.runs.model import write_variant
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder


def compare_with_baselines(job: TrainJob, run: Folder, names: Sequence[str]) -> Comparison:
    """Computes the baselines `names`, writes their predictions and `baselines.json`, and returns what that holds.

    An error of a single baseline is part of the result. Raises DataError where the rows can no longer be used,
    StorageError where they or the run's folder cannot be reached.
    """
    DOING.begin("reading rows for the baselines")
    assert job.spec.dataset is not None
    fitted = Fitted.load(run / FITTED)
    set_name = job.spec.dataset.held_out_set
    held = sample(job.spec, fitted, set_name)
    train = sample(job.spec, fitted, "train")
    model = _model_on(run, held, fitted.preprocessor.target)
    baselines: list[Baseline] = []
    for number, name in enumerate(names, start=1):
        DOING.begin(f"baseline {number} of {len(names)}: {name}")
        baselines.append(_computed(name, job, run, fitted, train, held, model))
    comparison = Comparison(
        set_name=set_name,
        rows=len(held.rows),
        of_rows=held.of_rows,
        model=fitted.preprocessor.target.judge.estimates(held.labels, model.predicted),
        baselines=baselines,
        importance=importance_of_columns(run, fitted.preprocessor, held),
    )
    write_comparison(run, comparison)
    return comparison


def _model_on(run: Folder, held: Sampled, target: Target) -> HeldOutPredictions:
    """The trained model's predictions for these rows."""
    stored, judge = read_predictions(run, MODEL), target.judge
    same = len(stored) == held.of_rows
    if not same or not np.array_equal(judge.values(stored["label"])[held.rows], held.labels):
        raise DataError(f"{run.uri}: the rows that the model was scored on have changed since: train it again")
    probabilities = None
    if PROBABILITY in stored.column_names:
        probabilities = stored[PROBABILITY].to_numpy()[held.rows]
    return HeldOutPredictions(
        judge.values(stored["prediction"])[held.rows], probabilities, np.arange(len(held.rows)), []
    )


def _computed(
    name: str, job: TrainJob, run: Folder, fitted: Fitted, train: Sampled, held: Sampled, model: HeldOutPredictions
) -> Baseline:
    since, target = time.perf_counter(), fitted.preprocessor.target
    try:
        baseline = _predict(name, job, run, fitted, train, held)
        rows = held.rows[baseline.row_indices]
        stored = target.judge.table(rows, baseline.predicted, baseline.probabilities, baseline.tokens)
        write_predictions(run, name, stored)
        if baseline.save is not None:
            with scratch_folder() as folder:
                baseline.save(replace(fitted.preprocessor, target=target.for_baselines()), folder)
                write_variant(folder, run, name)
    except Exception as error:  # whatever it is, the training has succeeded and the other baselines may
        return Baseline(name=name, error=str(error) or type(error).__name__)
    labels = held.labels[baseline.row_indices]
    return Baseline(
        name=name,
        standing=target.judge.estimates(labels, baseline.predicted),
        lead=target.judge.lead(labels, model.predicted[baseline.row_indices], baseline.predicted),
        notes=baseline.notes,
        variant=baseline.save is not None,
        cascade=curve(job.spec.baselines, labels, model, baseline, target.width),
        seconds=time.perf_counter() - since,
    )


def _predict(
    name: str, job: TrainJob, run: Folder, fitted: Fitted, train: Sampled, held: Sampled
) -> HeldOutPredictions:
    model = job.spec.baselines.language_model if job.spec.baselines else None
    if name != "languageModel" or model is None:
        validation = partial(sample, job.spec, fitted, "validation")
        return predict_held_out(name, train, held, fitted.preprocessor.target, validation)
    from trainjob.baselines.language_model.classify import classify

    if not fitted.preprocessor.target.chooses_one_class:
        raise UserError("a language model chooses one class for each text, but these rows have several labels")
    return classify(model, run, fitted.preprocessor.target.classes, train, held, job.spec.training.seed)
