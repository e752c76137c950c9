"""Runs that have finished, with models that were never trained."""

from pathlib import Path
from typing import Any

from predictor_runs import finish, save_untrained
from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.data import fit
from trainjob.runs.folder import begin_attempt
from trainjob.storage import Folder

TEXT = {
    "textClassifier": {
        "encoder": {"layers": 2, "hiddenSize": 32, "heads": 4, "vocabularySize": 400},
        "maxLength": 32,
        "dropout": 0.0,
    }
}
IMAGE = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 1024}, "loss": {"binaryCrossEntropy": {}}}}


def train_job(kind: str, data: Path, **spec: Any) -> TrainJob:
    """A TrainJob on the sets in the folder `data`; `spec` holds further fields."""
    ending = ".csv" if kind == "text" else ""
    dataset: dict[str, Any] = {name: {"uri": str(data / f"{name}{ending}")} for name in ("train", "test")}
    if kind == "text":
        dataset |= {"text": ["title", "body"], "label": "label"}
    model = {"model": TEXT if kind == "text" else IMAGE, "dataset": dataset, "baselines": {}}
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}}
    return with_defaults(TrainJob.model_validate(document | {"spec": model | spec}))


def write_run(folder: Path, job: TrainJob) -> Folder:
    run = Folder(str(folder))
    begin_attempt(run, job)
    finish(run)
    if job.spec.model.classifier is None:
        return run
    fitted = fit(job.spec)
    fitted.save(run / "fitted")
    save_untrained(job, fitted, Path(run.uri) / "model")
    return run
