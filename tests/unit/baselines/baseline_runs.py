"""Runs that have been trained, with a model that guesses: seven rows of ten are right."""

from pathlib import Path
from typing import Any

import numpy as np

from predictor_runs import finish
from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.baselines.rows import sample
from trainjob.data import fit
from trainjob.evaluation.predictions import prediction_table
from trainjob.runs.folder import begin_attempt
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder

TEXT = {"textClassifier": {"encoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 400}}}
TABLE = {"tableClassifier": {"tabm": {"members": 2, "hiddenSize": 8}}}
IMAGE = {"imageClassifier": {"mlp": {"hidden": [8]}}}


def write_run(folder: Path, kind: str, data: Path, has_test: bool = True, **spec: Any) -> tuple[TrainJob, Folder]:
    """A finished run in `folder`, on the sets in the folder `data`; `spec` are further fields."""
    ending = "" if kind == "image" else ".csv"
    dataset: dict[str, Any] = {"train": {"uri": str(data / f"train{ending}")}}
    if has_test:
        dataset["test"] = {"uri": str(data / f"test{ending}")}
    if kind == "text":
        dataset |= {"text": ["title", "body"], "label": "label"}
    if kind == "table":
        dataset |= {"label": "label"}
    spec = {"model": {"text": TEXT, "image": IMAGE, "table": TABLE}[kind], "dataset": dataset} | spec
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}}
    job = with_defaults(TrainJob.model_validate(document | {"spec": spec}))
    run = Folder(str(folder / "run"))
    begin_attempt(run, job)
    fitted = fit(job.spec)
    fitted.save(run / "fitted")
    held = sample(job.spec, fitted, "test" if has_test else "validation")
    chance = np.random.default_rng(0)
    guess = chance.integers(0, len(fitted.preprocessor.target.classes), len(held.labels))
    predicted = np.where(chance.random(len(guess)) < 0.7, held.labels, guess)
    sure = chance.random(len(guess))
    write_predictions(
        run, "model", prediction_table(held.rows, predicted, fitted.preprocessor.target.classes, sure, held.labels)
    )
    finish(run)
    return job, run
